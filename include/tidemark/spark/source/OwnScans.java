package tidemark;

import java.lang.reflect.Field;
import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.PythonScan;
import org.apache.spark.sql.execution.datasources.v2.python.PythonScanBuilder;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Function1;
import scala.Some;
import scala.runtime.AbstractPartialFunction;

/**
 * Gives every scan of a Python source what was planned for its own filters.
 *
 * Spark 4.2 keeps what a Python source has planned (its read function and partitions) in an object that all
 * DataFrames of one load share, so that a scan may run with the filters of another query, and leave out rows
 * without a word. After the optimizer has pushed filters down, this rule puts an object of its own under each
 * scan and pushes its filters again.
 */
public class OwnScans extends Rule {
    private static final Map SEEN = Collections.synchronizedMap(new WeakHashMap());

    private final String source;

    public OwnScans(String source) {
        this.source = source;
    }

    public String ruleName() {
        return "tidemark.OwnScans";
    }

    public TreeNode apply(TreeNode plan) {
        return ((LogicalPlan) plan).transformUp(new Replace(this.source));
    }

    public static class Replace extends AbstractPartialFunction {
        private final String source;

        public Replace(String source) {
            this.source = source;
        }

        public boolean isDefinedAt(Object node) {
            if (!(node instanceof DataSourceV2ScanRelation)) {
                return false;
            }
            Object scan = ((DataSourceV2ScanRelation) node).scan();
            return scan instanceof PythonScan && !SEEN.containsKey(scan) && source.equals(get(scan, "shortName"));
        }

        public Object applyOrElse(Object node, Function1 otherwise) {
            if (!isDefinedAt(node)) {
                return otherwise.apply(node);
            }
            DataSourceV2ScanRelation found = (DataSourceV2ScanRelation) node;
            PythonScan scan = (PythonScan) found.scan();
            PythonDataSourceV2 shared = (PythonDataSourceV2) get(scan, "ds");
            StructType schema = (StructType) get(scan, "outputSchema");
            CaseInsensitiveStringMap options = (CaseInsensitiveStringMap) get(scan, "options");
            Filter[] filters = (Filter[]) get(scan, "supportedFilters");

            PythonDataSourceV2 own = new PythonDataSourceV2();
            own.setShortName(source);
            set(own, "dataSourceInPython", shared.getOrCreateDataSourceInPython(source, options, new Some(schema)));
            PythonScanBuilder builder = new PythonScanBuilder(own, source, schema, options);
            if (filters.length > 0 && builder.pushFilters(filters).length > 0) {
                throw new IllegalStateException("filters that were pushed down are not taken again");
            }
            Object fresh = builder.build();
            SEEN.put(fresh, Boolean.TRUE);
            return new DataSourceV2ScanRelation(
                found.relation(), (PythonScan) fresh, found.output(), found.keyGroupedPartitioning(),
                found.ordering(), found.pushedFilters());
        }

        private static Object get(Object from, String name) {
            try {
                Field field = from.getClass().getDeclaredField(name);
                field.setAccessible(true);
                return field.get(from);
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
        }

        private static void set(Object into, String name, Object value) {
            try {
                Field field = into.getClass().getDeclaredField(name);
                field.setAccessible(true);
                field.set(into, value);
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
        }
    }
}

"""Installs the rule that gives every scan of the data source its own plan (``OwnScans.java``).

Spark 4.2 keeps what a Python source has planned once for all DataFrames of one ``load``: a DataFrame
used with several filters would silently lack rows. The rule is compiled by the compiler that Spark itself
uses for its queries, in the driver only. Where it cannot be installed, as by a client of a Connect server, no
filter may be pushed down.

This is the one module of the library that reaches into the JVM of a classic session.
"""

from importlib.resources import files
from typing import TYPE_CHECKING, Any

import structlog

from tidemark.spark.session_facts import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLASS = "tidemark.OwnScans"


def install(spark: "SparkSession", source: str) -> bool:
    """Install the rule in a session, once; whether it is installed."""
    if is_connect(spark):
        structlog.get_logger().info("filters are not pushed down: a client of Spark Connect adds no rules")
        return False
    from py4j.protocol import Py4JError

    try:
        methods = spark._jsparkSession.experimental()
        rules = methods.extraOptimizations()
        if all(rules.apply(place).ruleName() != CLASS for place in range(rules.size())):
            getattr(methods, "extraOptimizations_$eq")(rules.appended(_rule(spark, source)))
    except (Py4JError, AttributeError, OSError) as error:
        structlog.get_logger().warning(
            "filters are not pushed down: this Spark is none that they are safe with", cause=str(error)[:500]
        )
        return False
    return True


def _rule(spark: "SparkSession", source: str) -> Any:
    context: Any = spark.sparkContext
    jvm = context._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(files("tidemark.spark.source").joinpath("OwnScans.java").read_text())
    arguments = context._gateway.new_array(jvm.java.lang.Object, 1)
    arguments[0] = source
    return compiler.getClassLoader().loadClass(CLASS).getConstructors()[0].newInstance(arguments)

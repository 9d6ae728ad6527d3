"""A shell script that does what Ivy does, and the jars it "fetches"."""

from pathlib import Path

GOOD = {"kafka/a-1.jar": b"the jar of a", "cassandra/b-2.jar": b"the jar of b", "spark/c-3.jar": b"that of c"}
ANSWERS_17 = """case "$*" in *-version*) echo 'openjdk version "17.0.9"' >&2; exit 0;; esac"""
FETCHES = """
echo called >> "$CALLS"
for last; do :; done
into=${last%%/\\[conf\\]*}
for name in a-1:kafka b-2:cassandra c-3:spark; do
  grep -q "name=\\"${name%%-*}\\"" "$into/ivy/ivy.xml" || continue
  mkdir -p "$into/${name#*:}"
  echo "downloading https://registry/x/${name%%:*}.jar ..."
  cp "$JARS/${name#*:}/${name%%:*}.jar" "$into/${name#*:}/"
  echo "	[SUCCESSFUL ] org#${name%%-*};1!${name%%-*}.jar (1ms)"
done
"""


def calls(environ: dict[str, str]) -> int:
    """How often the script was asked to fetch."""
    path = Path(environ["CALLS"])
    return path.read_text().count("called") if path.exists() else 0

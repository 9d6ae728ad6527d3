"""Whether a rendition can be built from what is left of a log."""

import pytest

from tidemark.outputs.model.building import BuildNeeds, CompactedPart, NotBuildable, buildable

pytestmark = pytest.mark.unit

JOURNAL = BuildNeeds({"journal"}, counts_acknowledged=True)
ROWS = BuildNeeds({"latest"})


def build(compacted: CompactedPart, needs: BuildNeeds, acknowledged: tuple[int, ...] = ()) -> int:
    return buildable("bank", "accounts", compacted, needs, acknowledged)


def test_a_whole_log_builds_everything_from_the_beginning():
    assert build(CompactedPart(), BuildNeeds({"journal"}, "its target would miss those"), (3,)) == 0


@pytest.mark.parametrize(("needs", "policy"), [(JOURNAL, "journal"), (ROWS, "latest")])
def test_after_the_kinds_own_policy_it_answers_from_where_compaction_ended(needs, policy):
    assert build(CompactedPart(100, (policy,), 7_000), needs) == 7_000


@pytest.mark.parametrize(
    ("needs", "policies", "said"),
    [
        (JOURNAL, ("latest",), r"by another policy than `journal` \(latest\)"),
        (ROWS, ("journal", "latest"), r"by another policy than `latest` \(journal, latest\)"),
        (ROWS, (), r"\(unknown\)"),
        (BuildNeeds({"latest"}, "its transform 1 can drop a message"), ("latest",), "can drop a message"),
    ],
)
def test_otherwise_it_is_refused_with_the_reason(needs, policies, said):
    with pytest.raises(
        NotBuildable, match=f"bank/accounts: no rendition can be built: .*below id 100.*{said}"
    ):
        build(CompactedPart(100, policies, 7_000), needs)


def test_an_acknowledged_id_may_have_displaced_the_state_without_it():
    with pytest.raises(NotBuildable, match="id 40, which was acknowledged"):
        build(CompactedPart(100, ("latest",), 7_000), ROWS, (60, 40))
    assert build(CompactedPart(100, ("latest",), 7_000), ROWS, (100, 160)) == 7_000


def test_a_policy_that_leaves_acknowledged_messages_out_of_account_displaces_nothing():
    assert build(CompactedPart(100, ("journal",), 7_000), JOURNAL, (40,)) == 7_000

"""What is done by columns is what is done message by message and entity by entity, for the oddest of both."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.compaction_samples import JOURNAL, Sent, rows_of, sent

from tidemark.compaction.census import JournalCensus
from tidemark.compaction.policies import journal_batches
from tidemark.compaction.policies.facts_table import facts_in, facts_table, judge_table, merge_table
from tidemark.compaction.policies.journal_batches import COLUMNS, batch_facts, decoded_batch_facts
from tidemark.compaction.policies.journal_facts import facts_of, judge, merge_facts
from tidemark.compaction.policies.rules import CompactionRules
from tidemark.compaction.policies.verdicts import verdict_table
from tidemark.journal.action import Append, Delete, Mark, append
from tidemark.journal.events import EncodedEvent, Events

pytestmark = pytest.mark.unit

ACTION = "journal.action"
APPEND = b'{"append":{"range":{"from":%d,"to":%d},"payloadType":"%s"}}'
HEADERS = [
    *(
        APPEND % (first, last, form)
        for first, last in ((1, 1), (1, 2), (2, 1))
        for form in (b"json", b"binary")
    ),
    APPEND % (1, 1, b"text"),
    APPEND % (1, 2**63 - 1, b"json"),
    APPEND % (2**63, 2**63, b"json"),
    b'{"append":{"range":{"from":1.0,"to":1},"payloadType":"json","metadata":{"data":1e99999}}}',
    b'{"append":{"range":{"from":1,"to":1},"payloadType":"json","origin":7}}',
    b'{"delete":{"to":2,"origin":"somebody"}}',
    b'{"delete":{"to":0}}',
    b'{"purge":{}}',
    b'{"mark":{"id":"m"}}',
    b'{"mark":{}}',
    b'{"later":{}}',
    b"[]",
    b"{",
    b"\xff",
    None,
]
EVENT = '{"events":[{"seqNr":1,"tags":[]%s}]%s}'
PAYLOADS = [
    None,
    b"",
    b"broken",
    *(
        (EVENT % (payload, metadata)).encode()
        for payload in (
            "",
            ',"payloadType":"json","payload":{"a":[1,"é",{"b":null}]}',
            ',"payloadType":"text","payload":"text"',
            ',"payloadType":"text","payload":7',
            ',"payloadType":"binary","payload":"AA"',
            ',"payload":1e99999',
            ',"payload":[ 1.5,-2e3]',
            ',"payload":' + "1" * 400,
            ',"payload":"\\ud800"',
            ',"payload":"\\x"',
            ',"payload":' + "[" * 300 + "]" * 300,
            ',"payload":01',
            ',"payload":[1,]',
            ',"more":1',
        )
        for metadata in (
            "",
            ',"metadata":{}',
            ',"metadata":{"expireAfter":"soon"}',
            ',"metadata":{"data":1e99999}',
        )
    ),
    (EVENT % ("", "") + "x").encode(),
    b'{"events":[]}',
    b'{"events":[{"seqNr":1,"tags":[],"payload":"\xff"}]}',
    b'{"events":[{"seqNr":1,"tags":[]},{"seqNr":2,"tags":[]}]}',
    b'{"events":[{"seqNr":2,"tags":[]}]}',
    sent(append("a", 1, Events((EncodedEvent(1, (), "binary", b"\xff"),)))).value,
]
KEYS = [b"a", b"b", b"\xff", b"\xfe", b"", None]
ODD = st.builds(
    Sent,
    st.sampled_from(KEYS),
    st.sampled_from(PAYLOADS),
    headers=st.lists(
        st.one_of(
            st.tuples(st.just(ACTION), st.sampled_from(HEADERS)),
            st.tuples(st.just("other"), st.sampled_from([b"text", b"\xff", None])),
        ),
        max_size=3,
    ).map(tuple),
    timestamp_type=st.sampled_from([0, 0, 0, 1, -1]),
)
ORDERLY = st.sampled_from([append("a", 1, Events((EncodedEvent(n),))) for n in (1, 2)]).map(sent)


def looked(look, batch, rules):
    found = look("orders", 0, batch.select(list(COLUMNS)), rules)
    rows = sorted(facts_in(found.facts), key=lambda row: row[2].first_id)
    return rows, found.reach.tolist()


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(ODD, ORDERLY), min_size=1, max_size=8), st.data())
def test_a_batch_is_looked_at_as_its_messages_are(messages, data):
    ids = st.lists(st.integers(0, len(messages)), unique=True, max_size=2).map(sorted).map(tuple)
    rules = CompactionRules(JOURNAL, 10**6, 1, pins=data.draw(ids), acknowledged=data.draw(ids))
    batch = rows_of(enumerate(messages))
    batch = batch.slice(data.draw(st.integers(0, len(messages) - 1)))
    assert looked(batch_facts, batch, rules) == looked(decoded_batch_facts, batch, rules)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_every_odd_payload_is_judged_as_the_journal_judges_it(payload):
    rules = CompactionRules(JOURNAL, 10**6, 1)
    batch = rows_of([(0, Sent(b"a", payload, headers=((ACTION, APPEND % (1, 1, b"json")),)))])
    assert looked(batch_facts, batch, rules) == looked(decoded_batch_facts, batch, rules)


def test_what_is_in_order_is_not_read_message_by_message(monkeypatch):
    def refuse(*_):
        raise AssertionError("a message was read on its own")

    monkeypatch.setattr(journal_batches, "decoded_batch_facts", refuse)
    monkeypatch.setattr(journal_batches, "payload_matches_header", refuse)
    in_order = [
        sent(append("a", 1, Events((EncodedEvent(1, (), "json", '{"a":1}'),)))),
        sent(Delete("a", 1, 1)),
    ]
    facts, reach = looked(
        batch_facts, rows_of(enumerate([*in_order, sent(Mark("a", 1, "m"))])), CompactionRules(JOURNAL, 9, 1)
    )
    assert (len(facts), reach) == (2, [1, 0, -1])


@st.composite
def stretches(draw):
    """Facts of stretches of two entities' histories, each of one partition; together in any order."""
    open_ones, done = {}, []
    for id_ in range(draw(st.integers(1, 14))):
        key, partition = draw(st.sampled_from("ab")), draw(st.sampled_from([0, 0, 0, 1]))
        first, size = draw(st.integers(1, 4)), draw(st.integers(1, 2))
        kind = draw(st.sampled_from("aaaaddbp"))
        action = {
            "a": append(key, 1, Events(tuple(EncodedEvent(n) for n in range(first, first + size)))),
            "b": Append(key, 1, first, first, "json", b"broken"),
            "d": Delete(key, 1, first),
            "p": None,
        }[kind]
        offset = draw(st.sampled_from([id_, id_, id_, 3]))
        is_pinned = draw(st.sampled_from([False] * 9 + [True]))
        place = (id_, 1_000 + id_, partition, offset)
        facts = facts_of(place, action, is_purge=kind == "p", is_pinned=is_pinned)
        if draw(st.booleans()) and (earlier := open_ones.get((key, partition))):
            open_ones[key, partition] = earlier.then(facts)
            continue
        if (key, partition) in open_ones:
            done.append((key, open_ones[key, partition]))
        open_ones[key, partition] = facts
    done += [(key, facts) for (key, _), facts in open_ones.items()]
    return draw(st.permutations([("orders", key, facts) for key, facts in done]))


def by_entity(rows):
    return {key: [facts for _, name, facts in rows if name == key] for _, key, _ in rows}


@settings(max_examples=40, deadline=None)
@given(stretches())
def test_rows_of_facts_are_the_facts(rows):
    assert list(facts_in(facts_table(rows))) == rows


@settings(max_examples=60, deadline=None)
@given(stretches())
def test_a_table_of_one_partition_is_put_together_as_its_entities_are(rows):
    own = [row for row in rows if row[2].first_place[0] == 0]
    merged = list(facts_in(merge_table(facts_table(own))))
    expected = {key: merge_facts(parts) for key, parts in by_entity(own).items()}
    assert {key: facts for _, key, facts in merged} == expected
    assert len(merged) == len(expected)


@settings(max_examples=120, deadline=None)
@given(stretches())
def test_a_table_is_judged_as_its_entities_are(rows):
    census, one_by_one = JournalCensus(), JournalCensus()
    judged = judge_table(facts_table(rows), census)
    expected = {}
    for key, parts in by_entity(rows).items():
        facts = merge_facts(parts)
        one_by_one.note("orders", key, facts, judge(facts))
        if not judge(facts).keeps_everything:
            expected[key] = verdict_table([(key, judge(facts))]).to_pylist()[0]
    verdicts = judged.verdicts.to_pylist()
    assert {one["key"]: one for one in verdicts} == expected
    assert [verdicts[n]["key"] if n >= 0 else None for n in judged.of_row] == [
        key if key in expected else None for _, key, _ in rows
    ]
    assert census.conclude() == one_by_one.conclude()

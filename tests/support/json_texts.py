"""Texts of JSON documents, payloads and headers: good ones, odd ones, and bytes that are hardly any."""

from hypothesis import strategies as st

from tidemark.journal.codec.json_text import LONG_MAX

spaces = st.sampled_from([""] * 6 + [" ", "\n", "\t\r "])
numbers = st.one_of(
    st.integers(-(10**26), 10**26).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,24})?([eE][+-]?[0-9]{1,5})?", fullmatch=True),
    st.sampled_from(["-0", "0.0", "-0.0", "0e5", "0e9999", "1e6177", "1e6178", "1e-6178", "1E400"]),
    st.sampled_from(["9007199254740993.0", "999999999999999.5", "0.0001", "0.00001"]),
    st.sampled_from(["9" * 19, "9" * 20, "1" + "0" * 20, "-" + "8" * 20, "1" * 309, "1" * 310, "1" * 5000]),
    st.sampled_from(["01", "1.", "-", ".5", "NaN", "0." + "3" * 310]),
)
inside_texts = st.one_of(
    st.sampled_from(["a", "é", "😀", "\x7f", "\u2028", "/", "{", "]", ",", ":", "\n", "\x01"]),
    st.sampled_from([r"\/", r"\u00E9", r"\u007F", r"\u001F", r"\u0000", r"\n", r"\"", r"\\", r"\x", r"\u12"]),
    st.sampled_from([r"\ud83d\ude00", r"\ud800", r"\udc00"]),
    st.sampled_from(["1" * 20, ":" + "1" * 20, "-" + "1" * 25, "e5", "1.0"]),
)
texts = st.lists(inside_texts, max_size=4).map(lambda found: f'"{"".join(found)}"')
names = st.one_of(
    st.sampled_from(["a", "b", "é", r"\u0061", "\x7f", r"\ud800", ""]),
    st.sampled_from(["events", "seqNr", r"seq\u004er", "tags", "payload", "payloadType"]),
    st.sampled_from(["append", "delete", "range", "from", "to", "origin", "metadata", "data", "expireAfter"]),
).map(lambda name: f'"{name}"')


def arrays_of(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(
        lambda found, space: f"[{space}{f'{space},'.join(found)}]", st.lists(items, max_size=4), spaces
    )


def members(found: list[str], space: str) -> str:
    return f"{{{space}{f',{space}'.join(found)}{space}}}"


def objects_of(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    member = st.builds(lambda name, space, item: f"{name}{space}:{space}{item}", names, spaces, items)
    return st.builds(members, st.lists(member, max_size=4), spaces)


values = st.recursive(
    numbers | texts | st.sampled_from(["true", "false", "null", "[]", "{}"]),
    lambda inner: arrays_of(inner) | objects_of(inner),
    max_leaves=8,
)


def rarely(odd: st.SearchStrategy[str], usual: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.integers(0, 9).flatmap(lambda n: odd if n == 9 else usual)


def shaped(**usual: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """An object with these members, mostly; sometimes one is odd, missing, twice there, or one too many."""
    each = [
        rarely(values, value).map(lambda text, name=name: [f'"{name}":{text}'])
        for name, value in usual.items()
    ]
    lists = [rarely(st.just([]), member) for member in each]  # type: ignore[arg-type]
    more = rarely(st.lists(st.one_of(*each, objects_of(values).map(lambda o: [o[1:-1]]))), st.just([]))  # type: ignore[arg-type]
    return st.builds(
        lambda found, extra, space: members(
            [text for some in (*found, *extra) for text in some if text.strip()], space
        ),
        st.tuples(*lists),
        more,
        spaces,
    )


some_numbers = st.sampled_from(["1", "2", "3", str(LONG_MAX), str(LONG_MAX + 1), "1.0", "2e0", "0"])
metadata = shaped(expireAfter=st.sampled_from(['"60 s"', "null", "1000", '"soon"']), data=values)
documents = shaped(
    events=st.lists(
        shaped(
            seqNr=some_numbers,
            tags=st.sampled_from(["[]", '["a"]', '["b","a","b"]', r'["\ud800"]', "[1]"]),
            payloadType=st.sampled_from(['"json"', '"text"', "null", '"binary"', r'"\u006ason"']),
            payload=values,
        ),
        max_size=2,
    ).map(lambda found: f"[{','.join(found)}]"),
    metadata=metadata | st.just("{}"),
)
names_of_hosts = texts | st.sampled_from(['"host"', "null"])
headers = shaped(
    append=shaped(
        range=shaped(**{"from": some_numbers, "to": some_numbers}),
        origin=names_of_hosts,
        version=names_of_hosts,
        payloadType=st.sampled_from(['"json"', '"binary"', '"text"']),
        metadata=metadata | st.just("{}"),
    )
) | shaped(delete=shaped(to=some_numbers, origin=names_of_hosts))


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[str]) -> bytes:
    """A document's bytes, as they are or with something done to them."""
    data = draw(whole).encode("utf-8", "surrogatepass")
    place = draw(st.integers(0, len(data)))
    match draw(st.sampled_from(["whole", "whole", "cut", "behind", "before", "byte", "gone", "nested"])):
        case "cut":
            return data[:place]
        case "behind":
            return data + draw(st.sampled_from([b" ", b"\n", b"x", b"}", b",1", b"\x00", b"{}"]))
        case "before":
            return draw(st.sampled_from([b" ", b"\xef\xbb\xbf", b"\x00", b"1"])) + data
        case "byte":
            return data[:place] + draw(st.binary(min_size=1, max_size=2)) + data[place + 1 :]
        case "gone":
            return data[:place] + data[place + 1 :]
        case "nested":
            levels = draw(st.sampled_from([200, *range(250, 259), 400]))
            return data.replace(b"null", b"[" * levels + b"]" * levels)
        case _:
            return data

"""Whatever the guard lets through, a parser that follows the WHATWG URL standard reads the same host from it."""

from __future__ import annotations

import ada_url
import pytest
from hypothesis import HealthCheck, assume, event, example, given, settings
from hypothesis import strategies as st

from sift.content.addresses import is_allowed
from sift.content.guard import CheckedUrl, check_url
from sift.errors import TargetFailed
from tests.unit.content.guard_table import cases

ANY_PORT = range(65536)  # the port is not what is compared: more URLs get through
DEFAULT = {"http:": 80, "https:": 443}

# Among them full stops and digits of other scripts, letters that fold into others, and what IDNA drops or refuses.
tricky = st.sampled_from(
    list("abxn-._:@/\\?#[]%0123456789ß。Å①⑦\u00ad\u0131\u017f\u0378\u03c2\u03c3\u1e9e\u200c\u200d\u2024\uff0e\uff3fİ")
)
characters = st.one_of(st.characters(exclude_categories=("Cs",)), tricky)
letters = st.characters(min_codepoint=0x80, exclude_categories=("Cs", "Cn", "Co", "Zs"))
pieces = st.sampled_from(
    [
        *("public.test", "127.0.0.1", "0x7f", "0177", "1e3", "xn--", "xn--bcher-kva", "bücher", "faß", "日本", "ab--c"),
        *("..", ".", "。", "@", ":", "[::1]", "[::ffff:127.0.0.1]", "[", "]", ":80", ":8080", "%2e", "%", "//", "\\"),
        *("?", "#", "/", "-", "_", "\t", "\n", " ", "😀"),
    ]
)
hosts = st.lists(st.one_of(pieces, characters), max_size=8).map("".join)
names = st.text(letters, min_size=1, max_size=4).map("{}.test".format)
schemes = st.sampled_from(["http://", "https://", "hTtp://", "http:", "http:///", "http:\\\\", "//", "ftp://", ""])
ends = st.sampled_from(["", "/", "/x", "?q", "#f", ":80/", ":443", "/../a", "?@public.test", "#@public.test/"])
urls = st.builds("{}{}{}".format, schemes, st.one_of(hosts, names), ends)


def read_like_a_browser(url: str) -> tuple[str, str, int, str]:
    """Scheme, host, port and credentials; a final dot and the brackets of an address left off."""
    parsed = ada_url.URL(url)
    host = parsed.hostname.strip("[]").removesuffix(".")
    port = int(parsed.port) if parsed.port else DEFAULT[parsed.protocol]
    return parsed.protocol, host, port, parsed.username + parsed.password


def assert_agreement(url: str, checked: CheckedUrl) -> None:
    for text in (url, checked.url):
        assert read_like_a_browser(text) == (f"{checked.scheme}:", checked.host, checked.port, ""), ascii(text)


@settings(max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(urls)
@example("http://2\U0001dfee\xde\xda.test/")
@example("http://①②⑦.⓪.⓪.①/")
@example("http://public.test./")
@example("http://fa\u00df.test/")
def test_a_browser_goes_to_the_host_that_was_checked(url: str) -> None:
    try:
        checked = check_url(url, ANY_PORT)
    except TargetFailed:  # any other exception fails the test
        event("refused")
        return
    event("let through")
    assert_agreement(url, checked)


@settings(max_examples=1000, deadline=None)
@given(names)
def test_international_names(name: str) -> None:
    try:
        checked = check_url(f"https://{name}/")
    except TargetFailed:
        assume(False)
    assert_agreement(f"https://{name}/", checked)


@settings(max_examples=500, deadline=None)
@given(st.ip_addresses())
def test_addresses_in_any_form_that_a_browser_knows(address: object) -> None:
    literal = f"[{address}]" if ":" in str(address) else str(address)
    checked = check_url(f"http://{literal}/")
    assert_agreement(f"http://{literal}/", checked)
    assert str(checked.address) == str(address)


@settings(max_examples=500, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["{}", "{:#x}", "0{:o}", "{:#X}."]))
def test_an_address_written_as_one_number_is_refused(number: int, form: str) -> None:
    with pytest.raises(TargetFailed):
        check_url(f"http://{form.format(number)}/")


@settings(max_examples=500, deadline=None)
@given(
    st.ip_addresses(v=4), st.sampled_from(["::ffff:{}", "::{}", "64:ff9b::{}", "2002:{hex}::1", "2606:4700::5efe:{}"])
)
def test_no_address_hides_in_another(address: object, form: str) -> None:
    number = int(address)  # type: ignore[call-overload]
    literal = form.format(address, hex=f"{number >> 16:x}:{number & 0xFFFF:x}")
    checked = check_url(f"http://[{literal}]/")
    assert checked.address is not None
    assert not is_allowed(checked.address, 80)


@pytest.mark.parametrize("url", [url for _, url, expect in cases() if expect == "allow"])
def test_what_the_table_allows_is_agreed_on(url: str) -> None:
    assert_agreement(url, check_url(url))

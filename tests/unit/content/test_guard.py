"""The guard, over the whole table of addresses and over its own allow list."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Sequence

import pytest

from sift.content.addresses import is_allowed, parse_address, parse_allow
from sift.content.denials import parse_deny
from sift.content.guard import Guard, check_addresses, check_url
from sift.errors import TargetBusy, TargetFailed
from tests.unit.content.guard_table import PUBLIC, TableResolver, cases


def admit(url: str, allow: str = "", resolver: TableResolver | None = None, deny: str = "") -> tuple[str, list[str]]:
    guard = Guard(resolver or TableResolver(), parse_allow(allow), parse_deny(deny))
    checked, addresses = asyncio.run(guard.admit(url))
    return checked.url, [str(address) for address in addresses]


def refusal(url: str, allow: str = "", deny: str = "") -> TargetFailed:
    with pytest.raises(TargetFailed) as caught:
        admit(url, allow, deny=deny)
    return caught.value


def test_the_table_of_cases_is_read_whole() -> None:
    assert len(cases()) == 75
    assert {expect for _, _, expect in cases()} == {"allow", "block"}


@pytest.mark.parametrize(("name", "url", "expect"), cases(), ids=[row[0] for row in cases()])
def test_case(name: str, url: str, expect: str) -> None:
    if expect == "allow":
        _, addresses = admit(url)
        assert addresses
        assert "169.254.169.254" not in addresses
    else:
        assert refusal(url).code in ("blocked_address", "invalid_url")


def test_a_refusal_tells_nothing_of_the_address() -> None:
    for url in ("http://127.0.0.1/", "http://meta.test/", "http://mixed.test/", "http://public.test:22/"):
        error = refusal(url)
        assert (error.code, error.detail) == ("blocked_address", "The address is not allowed.")


def test_a_name_without_an_address() -> None:
    assert refusal("http://nowhere.test/").code == "dns_failed"


class NoResolver:
    """A resolver that fails as `getaddrinfo` does."""

    def __init__(self, number: int) -> None:
        self._number = number

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(self._number, "as told")


def test_a_name_server_that_is_away_is_not_a_name_that_does_not_exist() -> None:
    with pytest.raises(TargetBusy):
        asyncio.run(Guard(NoResolver(socket.EAI_AGAIN)).admit("http://public.test/"))
    for number in (socket.EAI_NONAME, socket.EAI_FAIL, errno.ENOENT):
        with pytest.raises(TargetFailed) as caught:
            asyncio.run(Guard(NoResolver(number)).admit("http://public.test/"))
        assert caught.value.code == "dns_failed"


def test_a_name_is_resolved_once_for_one_admission() -> None:
    resolver = TableResolver()
    assert admit("http://flip.test/", resolver=resolver)[1] == [PUBLIC]
    assert resolver.asked == ["flip.test"]


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("HTTP://PUBLIC.TEST:80", "http://public.test/"),
        ("https://public.test.:8443/a?b#c", "https://public.test:8443/a?b"),
        ("http://bücher.test/ü?q=ß", "http://xn--bcher-kva.test/%C3%BC?q=%C3%9F"),
        ("http://public.test/中文/页", "http://public.test/%E4%B8%AD%E6%96%87/%E9%A1%B5"),
        ("http://public.test/%7Ea%2Fb/%zz", "http://public.test/%7Ea%2Fb/%zz"),
        ('http://public.test/"<>^`{|}', "http://public.test/%22%3C%3E%5E%60%7B%7C%7D"),
        ("http://public.test?x", "http://public.test/?x"),
    ],
)
def test_one_spelling_is_sent(url: str, sent: str) -> None:
    assert admit(url)[0] == sent


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://",
        "http:///etc",
        "http://[::1",
        "http://public.test:99999/",
        "http://public.test:8a/",
        "http://pub%6cic.test/",
        "http://-a.test/",
        "http://a..test/",
        "http://" + "a" * 64 + ".test/",
        "http://public.test/\u2028",
        "http://public.test/a\x00b",
        "http://public.test/" + "a" * 9000,
        "javascript:alert(1)",
        "http://\u202epublic.test/",
        "http://\U0001dfee\xde.test/",  # a letter newer than this Python, if it is one at all
        "http://xn--.test/",
        "http://xn--a.test/",
    ],
)
def test_what_is_no_url_is_refused(url: str) -> None:
    assert refusal(url).code in ("invalid_url", "blocked_address")


@pytest.mark.parametrize(
    "address",
    ["2001:2::1", "2001:20::1", "5f00::1", "2606:4700::5efe:a00:1", "2606:4700::200:5efe:a00:1", "64:ff9b::808:808"],
)
def test_special_ipv6_is_closed(address: str) -> None:
    parsed = parse_address(address)
    assert parsed is not None
    assert not is_allowed(parsed, 443)


def test_a_zone_id_in_an_answer_refuses_the_name() -> None:
    with pytest.raises(TargetFailed):
        check_addresses([PUBLIC, "fe80::1%eth0"], 443)


def test_no_answers_are_no_permission() -> None:
    with pytest.raises(TargetFailed):
        check_addresses([], 443)


def test_the_allow_list_opens_its_rows_and_nothing_else() -> None:
    allow = "127.0.0.1:9999, 10.1.0.0/16, [fd00::5]:8081"
    assert admit("http://127.0.0.1:9999/", allow)[1] == ["127.0.0.1"]
    assert admit("http://10.1.2.3:8080/", allow)[1] == ["10.1.2.3"]
    assert admit("http://[fd00::5]:8081/", allow)[1] == ["fd00::5"]
    for url in (
        "http://127.0.0.1/",
        "http://127.0.0.1:8081/",
        "http://127.0.0.2:9999/",
        "http://10.1.2.3:9999/",
        "http://10.2.0.1/",
        "http://[fd00::5]/",
        "http://public.test:9999/",
        "http://localhost:9999/",
        "http://169.254.169.254/",
    ):
        assert refusal(url, allow).code == "blocked_address"


def test_a_name_that_leads_to_an_allowed_address_is_open_on_its_port_only() -> None:
    assert admit("http://rebind-loop.test:9999/", "127.0.0.1:9999")[1] == ["127.0.0.1"]
    assert refusal("http://rebind-loop.test/", "127.0.0.1:9999").code == "blocked_address"


@pytest.mark.parametrize("text", ["localhost", "127.0.0.1:http", "127.0.0.1:0", "10.0.0.1/8", "[::1", "1.2.3.4:70000"])
def test_a_bad_allow_list_names_its_row(text: str) -> None:
    with pytest.raises(ValueError, match="allow list"):
        parse_allow(text)


def test_an_empty_allow_list() -> None:
    assert parse_allow("") == parse_allow(" , ") == ()


def test_check_url_is_pure() -> None:
    checked = check_url("https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]:8443/x")
    assert checked.authority == "[2606:2800:21f:cb07:6820:80da:af6b:8b2c]:8443"
    assert checked.target == "/x"


@pytest.mark.parametrize(
    ("deny", "url"),
    [
        ("public.test", "http://public.test/"),
        ("PUBLIC.test.", "http://Public.Test./"),
        ("test", "http://public.test/"),
        ("bücher.test", "http://xn--bcher-kva.test/"),
        ("xn--bcher-kva.test", "http://bücher.test/"),
        (PUBLIC, f"http://{PUBLIC}/"),
        (PUBLIC, "http://public.test/"),
        ("other.test, 93.184.0.0/16", "http://public.test/"),
        ("2606:2800::/32", "http://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/"),
    ],
)
def test_a_denied_host_is_refused_as_any_other(deny: str, url: str) -> None:
    error = refusal(url, deny=deny)
    assert (error.code, error.detail) == ("blocked_address", "The address is not allowed.")


@pytest.mark.parametrize("deny", ["ublic.test", "www.public.test", "est", "public.test.example", "93.184.215.15", ""])
def test_a_deny_list_refuses_nothing_else(deny: str) -> None:
    assert admit("http://public.test/", deny=deny)[1] == [PUBLIC]


def test_a_denied_name_has_its_subdomains_and_is_never_looked_up() -> None:
    resolver = TableResolver()
    guard = Guard(resolver, deny=parse_deny("public.test"))
    for url in ("http://a.b.public.test/", "http://public.test/"):
        with pytest.raises(TargetFailed):
            asyncio.run(guard.admit(url))
    assert resolver.asked == []


def test_the_deny_list_wins_over_the_allow_list() -> None:
    assert admit("http://10.1.2.3/", "10.0.0.0/8", deny="10.2.0.0/16")[1] == ["10.1.2.3"]
    assert refusal("http://10.2.2.3/", "10.0.0.0/8", deny="10.2.0.0/16").code == "blocked_address"
    mapped = "http://[::ffff:10.2.2.3]/"
    assert refusal(mapped, "::ffff:0:0/96", deny="10.2.0.0/16").code == "blocked_address"
    assert refusal("http://rebind-loop.test:9999/", "127.0.0.1:9999", deny="127.0.0.0/8").code == "blocked_address"


@pytest.mark.parametrize(
    "row", ["10.0.0.1/8", "10.0.0", "127.1", "0x7f.1", "*.public.test", "public.test:80", "http://public.test", "a b"]
)
def test_a_bad_deny_list_names_its_row(row: str) -> None:
    with pytest.raises(ValueError, match="deny list") as caught:
        parse_deny(f"public.test, {row}")
    assert repr(row) in str(caught.value)

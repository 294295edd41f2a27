"""`five console` against a controller: the link logs a browser in and contains no token."""

from collections.abc import Iterator

import httpx
import pytest

from five.cli.main import main
from rapid.embedded_redis import EmbeddedRedis
from tests.services.live_controller import OPERATOR, VIEWER, LiveController, live


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveController]:
    with EmbeddedRedis(tmp_path_factory.mktemp("redis"), append_only=False).start() as server, \
            live(server.url) as found:
        yield found


def logged_in(controller: LiveController, printed: str) -> dict[str, str]:
    """Return the session that an opened link creates."""
    address, _, code = printed.strip().partition("#login=")
    assert address == controller.url + "/"
    answer = httpx.post(controller.url + "/v1/session", json={"code": code},
                        headers={"Origin": controller.url, "X-Five-Console": "test"})
    assert answer.status_code == 200, answer.text
    found: dict[str, str] = answer.json()
    return found


@pytest.mark.parametrize(("token", "more", "role"), [
    (OPERATOR, [], "operator"), (OPERATOR, ["--role", "viewer"], "viewer"), (VIEWER, [], "viewer")])
def test_link_has_at_most_the_tokens_role(controller: LiveController, monkeypatch: pytest.MonkeyPatch,
                                          capsys: pytest.CaptureFixture[str], token: str, more: list[str],
                                          role: str) -> None:
    monkeypatch.setenv("FIVE_OPERATOR_TOKEN", token)
    assert main(["console", "--url", controller.url, *more]) == 0
    printed = capsys.readouterr().out
    assert token not in printed
    assert logged_in(controller, printed)["role"] == role


def test_viewer_cannot_create_an_operator_link(controller: LiveController, monkeypatch: pytest.MonkeyPatch,
                                               capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FIVE_OPERATOR_TOKEN", VIEWER)
    assert main(["console", "--url", controller.url, "--role", "operator"]) != 0
    assert "cannot create a link for an operator" in "".join(capsys.readouterr())

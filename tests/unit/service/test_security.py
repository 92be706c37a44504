"""Who may ask what, and what nobody may do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from instar.errors import UsageError
from instar.service.app import ServiceOptions
from instar.service.auth import read_tokens
from instar.service.pages.door import Sessions
from instar.service.serve import serve
from testbed.lineage import dataset, run_event
from testbed.service import running

if TYPE_CHECKING:
    from pathlib import Path

READ, WRITE, BOTH = "read-token-0123456", "write-token-012345", "both-token-0123456"


@pytest.fixture
def options(tmp_path: Path) -> ServiceOptions:
    """Return options with three tokens."""
    file = tmp_path / "tokens"
    file.write_text(f"# people\n{READ} read\n\n{WRITE} write\n{BOTH} read,write\n")
    return ServiceOptions(tokens=read_tokens(str(file)))


def test_without_the_right_token_nothing_is_read_or_written(tmp_path: Path, options: ServiceOptions) -> None:
    """Each endpoint asks for its scope, and only the health check asks for none."""
    with running(f"sqlite:///{tmp_path}/lineage.db", options) as client:
        event = run_event("COMPLETE", 1, outputs=[dataset("x")])
        for endpoint in client.service.router.endpoints:
            path = endpoint.template.replace("{", "").replace("...}", "").replace("}", "")
            if path == "/healthz":
                continue
            allowed, refused = (WRITE, READ) if endpoint.writes else (READ, WRITE)
            for token, status in ((None, 401), ("x" * 20, 401), (refused, 403)):
                headers = {"authorization": f"Bearer {token}"} if token else {}
                response = client.request(endpoint.method, path, headers=headers, json=event)
                assert response.status_code == status, (endpoint.method, path)
            headers = {"authorization": f"bearer {allowed}"}
            response = client.request(endpoint.method, path, headers=headers, json=event)
            assert response.status_code not in {401, 403, 500}, (endpoint.method, path, response.text)
        assert client.get("/healthz").json() == {"status": "ok"}
        assert client.get("/metrics").status_code == 401
        assert client.get("/nothing").status_code == 401
        metrics = client.get("/metrics", headers={"authorization": f"Bearer {BOTH}"})
        assert 'instar_lineage_events_total{outcome="stored"} 1.0' in metrics.text


def test_people_sign_in_with_a_token_and_a_cookie_opens_the_pages_alone(
    tmp_path: Path, options: ServiceOptions
) -> None:
    """A token that may read is exchanged for a cookie that scripts cannot see; the API does not take it."""
    with running(f"sqlite:///{tmp_path}/lineage.db", options, pages=True) as client:
        asked = client.get("/dataset?ns=db&name=x", headers={"accept": "text/html"})
        assert asked.status_code == 401
        assert 'action="/sign-in"' in asked.text
        assert 'value="/dataset?ns=db&amp;name=x"' in asked.text
        assert client.get("/graph.json?ns=db&name=x").status_code == 401
        assert client.get("/static/style.css").status_code == 200
        for token in ("", "x" * 20, WRITE):
            refused = client.post("/sign-in", data={"token": token, "next": "/"})
            assert refused.status_code == 401
            assert "set-cookie" not in refused.headers
        foreign = client.post("/sign-in", data={"token": READ}, headers={"origin": "https://evil.example"})
        assert foreign.status_code == 403
        signed = client.post("/sign-in", data={"token": READ, "next": "/?q=x"})
        assert (signed.status_code, signed.headers["location"]) == (303, "/?q=x")
        cookie = signed.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Lax" in cookie
        assert READ not in cookie
        assert client.get("/").status_code == 200
        assert "Sign out" in client.get("/").text
        assert client.get("/api/v1/namespaces").status_code == 401
        assert client.post("/api/v1/lineage", json=run_event("COMPLETE", 1)).status_code == 401
        kept = dict(client.cookies)
        assert client.post("/sign-out").status_code == 303
        assert client.get("/").status_code == 401
        client.cookies.update(kept)
        assert client.get("/").status_code == 401, "the session is over, not only forgotten by the browser"


@pytest.mark.parametrize(
    "target", ["//evil.example", "https://evil.example", "/\\evil.example", "x", "/\r\nX: y", ""]
)
def test_signing_in_leads_to_this_site_only(tmp_path: Path, options: ServiceOptions, target: str) -> None:
    """Nobody is sent to another site, or gets another header, by an address that somebody gave him."""
    with running(f"sqlite:///{tmp_path}/lineage.db", options, pages=True) as client:
        signed = client.post("/sign-in", data={"token": READ, "next": target})
        assert (signed.status_code, signed.headers["location"]) == (303, "/")


def test_a_session_ends_by_itself() -> None:
    """A cookie is good for some hours, and old sessions give way to new ones."""
    now = [0.0]
    sessions = Sessions(lambda: now[0])
    key = sessions.begin()
    assert sessions.knows(key)
    assert not sessions.knows(key + "x")
    now[0] = 13 * 3600
    assert not sessions.knows(key)
    first = sessions.begin()
    for _ in range(10_000):
        sessions.begin()
    assert not sessions.knows(first)


@pytest.mark.parametrize("text", ["", "short read", f"{READ}", f"{READ} admin", f"{READ} read write x"])
def test_files_of_tokens_are_checked(tmp_path: Path, text: str) -> None:
    """A token is long enough and has scopes that exist, or the service does not start."""
    (tmp_path / "tokens").write_text(text)
    with pytest.raises(UsageError, match="token"):
        read_tokens(str(tmp_path / "tokens"))


def test_without_tokens_only_this_machine_is_served(tmp_path: Path) -> None:
    """A service that everybody could write to does not start."""
    with pytest.raises(UsageError, match="--tokens"):
        serve(f"sqlite:///{tmp_path}/lineage.db", "0.0.0.0", 0, ServiceOptions())
    assert not (tmp_path / "lineage.db").exists()


def test_a_web_page_of_somebody_else_reaches_nothing(tmp_path: Path) -> None:
    """Without tokens, a foreign origin and a name that was bent to this machine are refused."""
    with running(f"sqlite:///{tmp_path}/lineage.db") as client:
        event = run_event("COMPLETE", 1)
        for headers in ({"origin": "https://evil.example"}, {"host": "evil.example"}, {"origin": "null"}):
            assert client.post("/api/v1/lineage", json=event, headers=headers).status_code == 403
            assert client.get("/api/v1/namespaces", headers=headers).status_code == 403
        assert client.get("/api/v1/namespaces", headers={"origin": client.url}).status_code == 200


def test_unknown_paths_and_methods_have_the_same_shape_of_error(tmp_path: Path) -> None:
    """Every error is JSON with a code and a message."""
    with running(f"sqlite:///{tmp_path}/lineage.db") as client:
        for method, path, status in (
            ("GET", "/nothing", 404), ("PATCH", "/api/v1/lineage", 405),
            ("GET", "/api/v1/namespaces/%FF", 404),
            ("GET", "/api/v1/namespaces/%00", 400), ("GET", "/api/v1/namespaces?limit=x", 400),
            ("GET", "/api/v1/namespaces?limit=-1", 400), ("GET", "/api/v1/namespaces?limit=99999", 400),
            ("GET", "/api/v1/search", 400), ("GET", "/api/v1/search?q=%FF", 400),
            ("GET", "/api/v1/events/lineage?before=now", 422), ("POST", "/api/v1/jobs/runs/x/start", 404),
        ):  # fmt: skip
            response = client.request(method, path)
            assert (response.status_code, response.json()["code"]) == (status, status), path
            assert response.json()["message"]
        assert client.patch("/api/v1/lineage").headers["allow"] == "GET, POST"

"""Rate limits in the control plane: set for a workspace, counted for each of its tokens."""

import pytest

from tests.streams.api.conftest import Api, caller, code


@pytest.fixture
def slow(ruler: Api, owner: Api) -> Api:
    """An owner whose workspace lets each token make two requests at once, and one a second."""
    ruler.patch(f"workspaces/{owner.workspace.name}", {"rate_limit": 1, "rate_burst": 2})
    return owner


def test_without_a_limit_nothing_is_said_of_one(owner: Api) -> None:
    assert "X-RateLimit-Limit" not in owner.get("streams/").headers


def test_above_the_limit_nothing_is_done(slow: Api) -> None:
    answers = [slow.post("streams/", {"name": f"s{n}"}) for n in range(3)]
    assert [answer.status_code for answer in answers] == [201, 201, 429]
    assert code(answers[2]) == "rate_limited"
    assert [answer.headers["X-RateLimit-Remaining"] for answer in answers] == ["1", "0", "0"]
    assert answers[2].headers["Retry-After"] == "1"
    assert len(caller(slow.workspace).get("streams/").json()) == 2


def test_each_token_has_a_share_of_its_own(slow: Api) -> None:
    for _ in range(3):
        slow.get("account")
    assert caller(slow.workspace).get("account").status_code == 200


def test_without_a_burst_it_is_that_of_one_second(ruler: Api, slow: Api) -> None:
    ruler.patch(f"workspaces/{slow.workspace.name}", {"rate_limit": 7, "rate_burst": None})
    assert slow.get("account").headers["X-RateLimit-Limit"] == "7"


def test_a_limit_taken_back_holds_no_more(ruler: Api, slow: Api) -> None:
    ruler.patch(f"workspaces/{slow.workspace.name}", {"rate_limit": None})
    assert [slow.get("account").status_code for _ in range(4)] == [200] * 4


def test_an_account_tells_its_limit(slow: Api) -> None:
    limits = slow.get("account").json()["limits"]
    assert (limits["rate_limit"], limits["rate_burst"]) == (1, 2)


def test_a_method_that_is_not_there_costs_nothing(slow: Api) -> None:
    answers = [slow.call(method, "streams/") for method in ("PUT", "PATCH", "DELETE", "OPTIONS")]
    assert [answer.status_code for answer in answers] == [405] * 4
    assert slow.get("account").headers["X-RateLimit-Remaining"] == "1"

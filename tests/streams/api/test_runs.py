"""Runs of the history jobs: asked for, listed, seen."""

from typing import Any

import pytest

from streams.models import Run
from streams.models.history import Job
from streams.services.history import run_finish, run_take, run_works
from tests.streams.api.conftest import Api, code, fields


@pytest.fixture(autouse=True)
def no_runs(database: None) -> None:
    Run.objects.all().delete()


@pytest.mark.parametrize("body", [b"", b"{}"])
def test_all_jobs_are_queued(owner: Api, body: bytes) -> None:
    asked = owner.call("POST", "analytics/runs/", body)
    assert asked.status_code == 202
    answer = asked.json()
    assert [run["job"] for run in answer["runs"]] == ["archive", "rollup"]
    assert (answer["id"], answer["job"]) == (answer["runs"][1]["id"], "rollup")
    assert answer["url"] == f"http://testserver/api/v1/analytics/runs/{answer['id']}"
    assert asked.headers["Location"] == answer["url"]


def test_one_job_is_queued_once(owner: Api) -> None:
    first = owner.post("analytics/runs", {"job": "rollup"}).json()
    again = owner.post("analytics/runs", {"job": "rollup"}).json()
    assert again["id"] == first["id"]
    assert (first["state"], first["progress"], first["error"]) == ("queued", 0.0, None)


def test_a_run_is_seen_through(ruler: Api) -> None:
    asked = ruler.post("analytics/runs/", {"job": "archive"}).json()
    run = run_take([Job.ARCHIVE])
    assert run is not None
    assert (
        ruler.client.get(asked["url"], headers={"authorization": ruler.secret}).json()["state"] == "running"
    )
    run_works(run.pk, stages=3, stages_done=1, tasks=12, tasks_done=5)
    under_way = ruler.get(f"analytics/runs/{asked['id']}").json()
    assert [under_way[name] for name in ("stages", "stages_done", "tasks", "tasks_done")] == [3, 1, 12, 5]
    run_finish(run, counts={"messages": 3})
    run_works(run.pk, stages=9, stages_done=9, tasks=9, tasks_done=9)
    seen = ruler.get(f"analytics/runs/{asked['id']}/").json()
    assert (seen["state"], seen["progress"], seen["counts"]) == ("succeeded", 1.0, {"messages": 3})
    assert seen["finished_at"].endswith("Z")
    assert (seen["stages"], seen["tasks_done"]) == (3, 5), "what is over is told no more"


def test_a_list_is_newest_first_page_by_page(owner: Api) -> None:
    ids = [Run.objects.create(job="archive").pk for _ in range(3)]
    first = owner.get("analytics/runs/?limit=2")
    link = first.headers["Link"]
    rest = owner.client.get(link[1 : link.index(">")], headers={"authorization": owner.secret})
    assert [run["id"] for run in [*first.json(), *rest.json()]] == ids[::-1]


@pytest.mark.parametrize("body", [{"job": "x"}, {"job": None}, {"job": 1}])
def test_an_unknown_job_is_refused(owner: Api, body: Any) -> None:
    assert fields(owner.post("analytics/runs/", body)) == ["job"]
    assert not Run.objects.exists()


@pytest.mark.parametrize("run_id", ["0", "x", "9" * 30, "%00"])
def test_no_such_run(owner: Api, run_id: str) -> None:
    assert code(owner.get(f"analytics/runs/{run_id}")) == "run_not_found"


def test_what_a_run_counted_is_no_other_workspaces_to_see(owner: Api, ruler: Api) -> None:
    run = Run.objects.create(job="archive", state="succeeded", counts={"messages": 7})
    assert owner.get(f"analytics/runs/{run.pk}").json()["counts"] == {}
    assert ruler.get(f"analytics/runs/{run.pk}").json()["counts"] == {"messages": 7}

"""Runs of the history jobs over HTTP."""

import re
from typing import Any, ClassVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from streams import selectors
from streams.api.base import ApiView
from streams.api.fields import Moment, OneOf, Strict
from streams.api.operation import Operation
from streams.api.queries import RunsAsked
from streams.errors import Refusal
from streams.models import Run
from streams.models.history import Job, RunState
from streams.services.history import run_request

PATH = "/api/v1/analytics/runs/"

FAILED = "The run failed; the reason is shown to those who can see every stream of the workspace 'default'."


class RunWanted(Strict):
    """Which job to run."""

    job = OneOf(choices=Job.values, required=False, help_text="None: `archive`, then `rollup`.")


class RunObject(serializers.Serializer):  # type: ignore[type-arg]
    """A run of a history job."""

    id = serializers.IntegerField()
    url = serializers.SerializerMethodField()
    job = serializers.ChoiceField(choices=Job.values)
    state = serializers.ChoiceField(choices=RunState.values)
    progress = serializers.FloatField(help_text="0 to 1.")
    stages = serializers.IntegerField(help_text="Stages that Spark has planned for it so far.")
    stages_done = serializers.IntegerField()
    tasks = serializers.IntegerField(help_text="Tasks of these stages.")
    tasks_done = serializers.IntegerField()
    created_at = Moment()
    started_at = Moment(allow_null=True)
    finished_at = Moment(allow_null=True)
    counts = serializers.SerializerMethodField(
        help_text="What the job counted; shown in `default`, to tokens for every stream."
    )
    error = serializers.SerializerMethodField(
        help_text="Why it failed, or null; to others than those who see `counts`, that it did."
    )

    def get_url(self, run: Run) -> str:
        return run_url(run, self.context["request"])

    def get_counts(self, run: Run) -> dict[str, Any]:
        return dict(run.counts) if self._sees_inside else {}

    def get_error(self, run: Run) -> str | None:
        if not run.error:
            return None
        return run.error if self._sees_inside else FAILED

    @property
    def _sees_inside(self) -> bool:
        return bool(self.context["request"].user.sees_inside_runs)


class RunsRequested(RunObject):
    """The run that ends last of those that were queued, and all of them."""

    runs = RunObject(many=True)


def run_url(run: Run, request: Request) -> str:
    """Where to ask how far a run has come."""
    return str(request.build_absolute_uri(f"{PATH}{run.pk}"))


class RunsView(ApiView):
    """``/analytics/runs/``"""

    operations: ClassVar = {
        "GET": Operation(
            id="runs_list",
            summary="List runs, newest first",
            scope="read",
            query=RunsAsked,
            answer=RunObject,
            many=True,
        ),
        "POST": Operation(
            id="run_request",
            summary="Run a history job now",
            scope="manage",
            body=RunWanted,
            body_optional=True,
            status=202,
            answer=RunsRequested,
            description="A job that is queued already is answered with that run.",
            examples={"all": {}, "one": {"job": "rollup"}},
        ),
    }

    def get(self, request: Request) -> Response:
        runs, more = selectors.runs_page(before=self.asked.get("after"), limit=self.asked["limit"])
        return self.page(self.rows(RunObject, runs), next_after=runs[-1].pk if more else None)

    def post(self, request: Request) -> Response:
        wanted = self.sent(RunWanted)
        jobs = [wanted["job"]] if "job" in wanted else [Job.ARCHIVE, Job.ROLLUP]
        runs = run_request(jobs=jobs, requested_by=self.caller.actor.name)
        rows = self.rows(RunObject, runs)
        return Response({**rows[-1], "runs": rows}, status=202, headers={"Location": rows[-1]["url"]})


class RunView(ApiView):
    """``/analytics/runs/{id}``"""

    operations: ClassVar = {
        "GET": Operation(
            id="run_get",
            summary="See a run",
            scope="read",
            answer=RunObject,
            refusals=("run_not_found",),
        ),
    }

    def get(self, request: Request, run_id: str) -> Response:
        is_id = re.fullmatch(r"[0-9]{1,18}", run_id) is not None
        run = Run.objects.filter(pk=int(run_id)).first() if is_id else None
        if run is None:
            raise Refusal("run_not_found", "There is no such run.")
        return Response(RunObject(run, context={"request": request}).data)

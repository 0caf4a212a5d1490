"""Every page of the console in its main states: what axe, a phone, dark colours and a stranger's text are tried on.

``PAGES`` has a row for every address that shows something; ``NO_PAGES`` names the others. A test holds both against
the addresses that there are, so that a new page is tried, too. Which of them a role may see is told by the right that
each address needs (``tests/dashboard/test_roles.py``).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from playwright.sync_api import Page, expect

from streams.access import ROLE_SCOPES
from streams.bearer import scopes_cover
from tests.dashboard.test_roles import ROWS

Deed = Callable[[Page], object]


def click(role: str, name: str) -> Deed:
    return lambda page: page.get_by_role(role, name=name, exact=True).first.click()  # type: ignore[arg-type]


def look_inside(page: Page) -> None:
    """The first message, opened in its row."""
    page.locator("a[data-open]").first.click()
    expect(page.locator(".detail")).to_be_visible()


def open_menus(page: Page) -> None:
    """The menu of a row, with what can be done to several chosen ones above."""
    page.get_by_label("Select all on this page").check()
    page.get_by_title("More").first.click()


def open_filters(page: Page) -> None:
    """The menu of what is kept under a name."""
    page.locator("summary").filter(has_text="Saved filters").click()


def search_keys(page: Page) -> None:
    page.keyboard.press("Control+k")
    expect(page.get_by_role("option").first).to_be_visible()


def show_keys(page: Page) -> None:
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()


def settle_all(page: Page) -> None:
    page.get_by_label("Apply to", exact=True).select_option("all")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("button", name="Nack")).to_be_visible()


def do_to_letters(page: Page) -> None:
    page.locator("#dead-letters input[type=checkbox]").last.check()
    page.locator("#dead-letters").get_by_role("button", name="Continue…").click()
    expect(page.get_by_role("button", name="Replay 1")).to_be_visible()


def publish_a_wrong_line(page: Page) -> None:
    page.get_by_label("Lines", exact=True).fill("nonsense")
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_text("Line 1 was not stored")).to_be_visible()


def look_at_a_file(page: Page) -> None:
    """One that makes a stream, and says what is not in it."""
    page.get_by_label("The file").fill("okmq: 1\nstreams:\n  looked-at: {ttl: 60}\n")
    page.get_by_label("Delete what it does not declare").check()
    page.get_by_role("button", name="Preview changes").click()
    expect(page.get_by_role("button", name="Apply and remove")).to_be_visible()


def look_at_a_wrong_file(page: Page) -> None:
    page.get_by_label("The file").fill("okmq: 1\nstreams: nonsense\n")
    page.get_by_role("button", name="Preview changes").click()
    expect(page.get_by_text("The file cannot be applied")).to_be_visible()


def try_a_rule(page: Page) -> None:
    page.get_by_label("Name", exact=True).fill("lags")
    page.get_by_role("button", name="Dry run").click()


@dataclass(frozen=True)
class State:
    """An address of the console, ``{stream}`` and ``{group}`` put in, and what is done there before looking.

    Attributes:
        needs: the right that the deed needs.
    """

    path: str
    done: Deed | None = None
    name: str = ""
    needs: str = "observe"

    def shown(self, page: Page, names: dict[str, str]) -> None:
        page.goto(self.path.format(**names))
        if self.done:
            self.done(page)


STREAM, GROUP = "/streams/{stream}/", "/streams/{stream}/groups/{group}/"

PAGES: dict[str, tuple[State, ...]] = {
    "overview": (
        State("/"),
        State("/", search_keys, "palette open"),
        State("/", show_keys, "keys open"),
    ),
    "login": (State("/login/?next=/"),),
    "profile": (State("/profile/"),),
    "password": (State("/profile/password/"),),
    "palette": (State("/search/?q={stream}"), State("/search/?q=no-such-thing", name="nothing found")),
    "events": (State("/events/"), State("/events/?stream=no-such-stream", name="nothing matches")),
    "sql": (State("/sql/"), State("/sql/?saved=by%20hour", name="saved")),
    "sql_answer": (State("/sql/{query}/"),),
    "alerts": (
        State("/alerts/"),
        State("/alerts/", try_a_rule, "tried", needs="manage"),
    ),
    "alert_rule": (State("/alerts/{rule}/"),),
    "alert_rule_delete": (State("/alerts/{rule}/delete/"),),
    "groups": (
        State("/groups/?sort=-status"),
        State("/groups/?status=losing", name="nothing matches"),
    ),
    "streams": (
        State("/streams/?name={stream}"),
        State("/streams/?name={stream}&sort=-messages", open_menus, "menus open"),
        State("/streams/?name=no-such-stream", name="nothing matches"),
        State("/streams/?name=(&regex=1", name="expression refused"),
        State("/streams/?internal=1", name="with internal ones"),
    ),
    "streams_bulk": (
        State("/streams/_bulk/?do=purge&stream={stream}"),
        State("/streams/_bulk/?do=label&stream={stream}", name="label"),
    ),
    "stream_create": (
        State("/streams/_new/"),
        State("/streams/_new/", click("button", "Create stream"), "refused"),
    ),
    "stream_messages": (
        State(STREAM),
        State(STREAM + "?start=oldest", look_inside, "row open", needs="read"),
        State(STREAM + "?match=.n+%3C+5&start=oldest", name="searched"),
        State(STREAM + "?match=.n+%3C", name="filter refused"),
        State(STREAM + "?match=.n+%3C+5", open_filters, name="filters open", needs="read"),
        State(STREAM + "?match=no-such-text", name="nothing matches"),
        State("/streams/{empty}/", name="empty"),
    ),
    "message": (State(STREAM + "messages/3/"),),
    "stream_purge": (
        State(STREAM + "purge/"),
        State(STREAM + "purge/?what=newest&at=2", name="part"),
        State(STREAM + "purge/?what=offset&at=soon", name="refused"),
    ),
    "message_delete": (State(STREAM + "messages/3/delete/"),),
    "removal_end": (State(STREAM + "removals/4/end/"),),
    "stream_tail": (State(STREAM + "tail/"),),
    "tails": (
        State("/tail/", name="nothing chosen"),
        State("/tail/?streams={stream},no-such-stream&stream={empty}&ring=50"),
        State("/tail/?streams=*", name="all"),
    ),
    "stream_publish": (State(STREAM + "publish/"), State(STREAM + "publish/?like=3", name="again")),
    "stream_publish_many": (
        State(STREAM + "publish/many/"),
        State(STREAM + "publish/many/", publish_a_wrong_line, "refused", needs="publish"),
    ),
    "stream_rates": (State(STREAM + "rates/"), State("/streams/{empty}/rates/?range=6h", name="at rest")),
    "stream_groups": (State(STREAM + "groups/"), State("/streams/{empty}/groups/", name="none")),
    "group": (
        State(GROUP),
        State(GROUP + "?position=earliest", name="seek previewed"),
    ),
    "group_activity": (State(GROUP + "activity/"),),
    "group_settings": (
        State(GROUP + "settings/"),
        State(GROUP + "settings/?delete=1", name="to be deleted"),
    ),
    "group_pending": (
        State(GROUP + "pending/"),
        State(GROUP + "pending/", settle_all, "settling", needs="consume"),
        State(GROUP + "pending/?deliveries=9", name="nothing matches"),
    ),
    "dead_letters": (
        State(GROUP + "dead-letters/"),
        State(GROUP + "dead-letters/", do_to_letters, "letters chosen", needs="manage"),
        State(GROUP + "dead-letters/?reason=no-such-reason", name="nothing matches"),
    ),
    "dead_letter": (State(GROUP + "dead-letters/{letter}/"),),
    "stream_history": (State(STREAM + "history/"), State(STREAM + "history/?range=30d", name="long")),
    "stream_erasures": (
        State(STREAM + "history/erasures/?what=offset&at=3"),
        State(STREAM + "history/erasures/?what=key&at=eu.*", click("button", "Preview"), "refused"),
    ),
    "stream_activity": (State(STREAM + "activity/"),),
    "stream_retention": (
        State(STREAM + "retention/"),
        State(STREAM + "retention/?max_messages=5", name="previewed"),
        State(STREAM + "retention/?ttl=soon", name="refused"),
    ),
    "stream_settings": (
        State(STREAM + "settings/"),
        State(STREAM + "settings/?delete=1", name="to be deleted"),
    ),
    "tokens": (State("/settings/tokens/"),),
    "system": (State("/settings/system/"),),
    "people": (State("/settings/people/"), State("/settings/people/?narrow={person}")),
    "person_remove": (State("/settings/people/{person}/remove/"),),
    "person_password": (State("/settings/people/{person}/password/"),),
    "configuration": (
        State("/settings/configuration/"),
        State("/settings/configuration/", look_at_a_file, "looked at", needs="admin"),
        State("/settings/configuration/", look_at_a_wrong_file, "refused", needs="admin"),
    ),
    "workspaces": (State("/settings/workspaces/"),),
    "workspace": (State("/settings/workspaces/default/"),),
}

NO_PAGES = {
    # what is done by a form, and answered by a page above
    *(
        "logout",
        "workspace_choose",
        "logins_end",
        "zone",
        "language",
        "theme",
        "demo_start",
        "demo_stop",
        "sql_forget",
    ),
    "sql_publish",
    *("filter_save", "filter_delete"),
    *("sql_cancel", "alert_rule_switch", "stream_columns", "group_seek", "group_pause"),
    *("alert_rule_mute", "alert_rule_test"),
    *("group_resume", "group_delete", "group_settle", "dead_letters_replay", "dead_letters_bulk"),
    *("stream_runs", "removal_undo", "stream_delete", "token_revoke"),
    *("person_change", "workspace_delete", "stream_replays"),
    "stream_replay",
    # numbers, files and bodies as they came
    *(
        "favicon",
        "live_now",
        "stream_kept",
        "events_export",
        "sql_csv",
        "streams_export",
        "tails_more",
        "configuration_download",
        "groups_export",
        "message_raw",
        "stream_export",
    ),
    "dead_letter_raw",
}


def states() -> Iterator[tuple[str, State]]:
    """Every state under a name for its test."""
    for page, tried in PAGES.items():
        for state in tried:
            yield f"{page} {state.name}".strip(), state


def states_for(role: str) -> Iterator[tuple[str, State]]:
    """Of each page behind the login that a role comes to, the first state and those with a deed that it may do."""
    for page, tried in PAGES.items():
        for number, state in enumerate(tried):
            rights = (ROWS[page].get, state.needs)
            is_theirs = all(right and scopes_cover(ROLE_SCOPES[role], right) for right in rights)
            if is_theirs and (number == 0 or state.done):
                yield f"{page} {state.name}".strip(), state

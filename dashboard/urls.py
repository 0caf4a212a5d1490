"""The console's addresses; each tab and each page is one. A stream's name never begins with an underscore."""

from django.urls import path

from dashboard.sockets import LiveSocket
from dashboard.views import (
    errors,
    group_letters,
    group_page,
    live_now,
    overview,
    people,
    profile,
    session,
    stream_deletions,
    stream_export,
    stream_groups,
    stream_history,
    stream_messages,
    stream_publish,
    stream_settings,
    stream_tail,
    streams,
    streams_bulk,
    tokens,
    workspaces,
)

app_name = "dashboard"

urlpatterns = [
    path("", overview.overview, name="overview"),
    # Asked for by browsers on pages that cannot name their icon, such as a raw body.
    path("favicon.ico", errors.favicon, name="favicon"),
    path("login/", session.Login.as_view(), name="login"),
    path("logout/", session.Logout.as_view(), name="logout"),
    path("workspace/", session.workspace, name="workspace_choose"),
    path("profile/", profile.profile, name="profile"),
    path("profile/password/", profile.password, name="password"),
    path("profile/logins/end/", profile.end_logins, name="logins_end"),
    path("theme/", session.theme, name="theme"),
    path("live/now/", live_now.now, name="live_now"),
    path("streams/", streams.streams, name="streams"),
    path("streams/_columns/", streams.columns, name="stream_columns"),
    path("streams/_export/", streams.export, name="streams_export"),
    path("streams/_bulk/", streams_bulk.bulk, name="streams_bulk"),
    path("streams/_new/", streams.create, name="stream_create"),
    path("streams/<str:name>/", stream_messages.browse, name="stream_messages"),
    path("streams/<str:name>/messages/<int:offset>/", stream_messages.message, name="message"),
    path("streams/<str:name>/messages/<int:offset>/raw/", stream_messages.raw, name="message_raw"),
    path(
        "streams/<str:name>/messages/<int:offset>/delete/",
        stream_deletions.message_delete,
        name="message_delete",
    ),
    path("streams/<str:name>/export/", stream_export.export, name="stream_export"),
    path("streams/<str:name>/tail/", stream_tail.tail, name="stream_tail"),
    path("streams/<str:name>/publish/", stream_publish.publish, name="stream_publish"),
    path("streams/<str:name>/groups/", stream_groups.groups, name="stream_groups"),
    path("streams/<str:name>/groups/<str:group>/", group_page.group_page, name="group"),
    path("streams/<str:name>/groups/<str:group>/seek/", group_page.seek, name="group_seek"),
    path("streams/<str:name>/groups/<str:group>/pause/", group_page.pause, name="group_pause"),
    path("streams/<str:name>/groups/<str:group>/resume/", group_page.resume, name="group_resume"),
    path("streams/<str:name>/groups/<str:group>/delete/", group_page.delete, name="group_delete"),
    path(
        "streams/<str:name>/groups/<str:group>/dead-letters/replay/",
        group_letters.replay,
        name="dead_letters_replay",
    ),
    path(
        "streams/<str:name>/groups/<str:group>/dead-letters/delete/",
        group_letters.delete,
        name="dead_letters_delete",
    ),
    path(
        "streams/<str:name>/groups/<str:group>/dead-letters/<int:offset>/",
        group_letters.letter,
        name="dead_letter",
    ),
    path(
        "streams/<str:name>/groups/<str:group>/dead-letters/<int:offset>/raw/",
        group_letters.raw,
        name="dead_letter_raw",
    ),
    path("streams/<str:name>/history/", stream_history.history, name="stream_history"),
    path("streams/<str:name>/history/runs/", stream_history.runs, name="stream_runs"),
    path("streams/<str:name>/settings/", stream_settings.settings, name="stream_settings"),
    path("streams/<str:name>/delete/", stream_settings.delete, name="stream_delete"),
    path("settings/tokens/", tokens.tokens, name="tokens"),
    path("settings/tokens/<int:token_id>/revoke/", tokens.revoke, name="token_revoke"),
    path("settings/people/", people.people, name="people"),
    path("settings/people/<str:name>/", people.change, name="person_change"),
    path("settings/people/<str:name>/password/", people.reset_password, name="person_password"),
    path("settings/people/<str:name>/remove/", people.remove, name="person_remove"),
    path("settings/workspaces/", workspaces.workspaces, name="workspaces"),
    path("settings/workspaces/<str:name>/", workspaces.workspace, name="workspace"),
    path("settings/workspaces/<str:name>/delete/", workspaces.delete, name="workspace_delete"),
]

websocket_urlpatterns = [path("live/", LiveSocket.as_asgi())]

"""Tokens: the secret is shown once, and revoking is a form."""

import re

import pytest
from django.test import Client

from streams import bearer
from streams.models import Token, Workspace

FORM = {"name": "shop-api", "scopes": ["read", "publish"], "streams": "orders.*, payments", "expires": "30"}


def test_a_new_token_shows_its_secret_once(owner: Client) -> None:
    answer = owner.post("/settings/tokens/", FORM)
    (secret,) = re.findall(r"okmq_[\w-]{43}", answer.content.decode())
    token = Token.objects.get(name="shop-api")
    assert token.digest == bearer.digest(secret)
    assert (token.scopes, token.streams) == (["read", "publish"], ["orders.*", "payments"])
    assert token.expires_at is not None
    assert "no-store" in answer["Cache-Control"]
    assert secret not in owner.get("/settings/tokens/").content.decode()


def test_a_token_needs_a_name_and_a_right(owner: Client) -> None:
    answer = owner.post("/settings/tokens/", {"name": "", "scopes": []})
    assert answer.status_code == 422
    assert {"name", "scopes"} <= answer.context["form"].errors.keys()
    assert not Token.objects.exists()


@pytest.mark.parametrize("written", [",", " ", " , ,", "orders;payments", "größe", "a" * 51, "x," * 101])
def test_a_restriction_that_cannot_be_read_is_no_token_for_every_stream(owner: Client, written: str) -> None:
    answer = owner.post("/settings/tokens/", {**FORM, "streams": written})
    assert answer.status_code == 422
    assert list(answer.context["form"].errors) == ["streams"]
    assert not Token.objects.exists()


def test_a_restriction_that_is_left_empty_is_none(owner: Client) -> None:
    assert owner.post("/settings/tokens/", {**FORM, "streams": ""}).status_code == 200
    assert Token.objects.get().streams == []


def test_a_token_is_revoked(owner: Client) -> None:
    owner.post("/settings/tokens/", FORM)
    token = Token.objects.get(name="shop-api")
    assert owner.get(f"/settings/tokens/{token.pk}/revoke/").status_code == 405
    assert owner.post(f"/settings/tokens/{token.pk}/revoke/")["Location"] == "/settings/tokens/"
    assert not Token.objects.filter(pk=token.pk).exists()


def test_a_viewer_sees_no_tokens(viewer: Client) -> None:
    assert viewer.get("/settings/tokens/").status_code == 403
    assert viewer.post("/settings/tokens/", FORM).status_code == 403


def test_a_stranger_neither_sees_nor_revokes_ours(
    owner: Client, stranger: Client, workspace: Workspace
) -> None:
    owner.post("/settings/tokens/", FORM)
    token = Token.objects.get(name="shop-api")
    assert b"shop-api\xe2" not in stranger.get("/settings/tokens/").content
    assert stranger.get("/settings/tokens/").context["tokens"] == []
    assert stranger.post(f"/settings/tokens/{token.pk}/revoke/").status_code == 404
    assert Token.objects.filter(pk=token.pk).exists()

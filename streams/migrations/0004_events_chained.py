"""Events get their workspace's name, so that they outlive it, and are chained in the order of their ids."""

import secrets

from django.db import migrations, models

from streams import chain

SLICE = 500


def chain_events(apps, schema_editor):
    """Chain what is there; the chain's id is drawn now."""
    Event, EventHead = apps.get_model("streams", "Event"), apps.get_model("streams", "EventHead")
    workspaces = dict(apps.get_model("streams", "Workspace").objects.values_list("pk", "name"))
    if not Event.objects.exists():
        return
    fresh = last_hash = secrets.token_hex(32)
    last = 0
    while rows := list(Event.objects.filter(id__gt=last).order_by("id")[:SLICE]):
        for row in rows:
            row.workspace_id = row.old_workspace_id
            row.workspace = workspaces.get(row.old_workspace_id, "")
            row.previous = last_hash
            row.hash = last_hash = chain.digest(
                {field: getattr(row, field) for field in chain.FIELDS}, previous=last_hash
            )
            last = row.id
        Event.objects.bulk_update(rows, ["workspace_id", "workspace", "previous", "hash"])
    EventHead.objects.create(id=1, chain=fresh, last=last, hash=last_hash)


class Migration(migrations.Migration):

    dependencies = [
        ("streams", "0003_rate_limits"),
    ]

    operations = [
        migrations.CreateModel(
            name="EventHead",
            fields=[
                ("id", models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("chain", models.CharField(max_length=64)),
                ("last", models.BigIntegerField(default=0)),
                ("hash", models.CharField(max_length=64)),
                ("noted", models.CharField(default="0-0", max_length=40)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("id", 1)), name="one_head_of_events")
                ],
            },
        ),
        migrations.RemoveIndex(model_name="event", name="event_by_stream"),
        migrations.RenameField(model_name="event", old_name="workspace", new_name="old_workspace"),
        migrations.AddField("event", "workspace", models.CharField(blank=True, default="", max_length=50)),
        migrations.AddField("event", "workspace_id", models.BigIntegerField(null=True)),
        migrations.AddField("event", "previous", models.CharField(max_length=64, default=""), preserve_default=False),
        migrations.AddField("event", "hash", models.CharField(max_length=64, default=""), preserve_default=False),
        migrations.AlterField("event", "time", models.DateTimeField(db_index=True)),
        migrations.RunPython(chain_events, migrations.RunPython.noop),
    ]

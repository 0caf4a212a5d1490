"""From here on the database itself refuses to change or delete an event, and to insert one anywhere but at the end."""

from django.db import migrations, models

GUARD = {
    "sqlite": [
        """
        CREATE TRIGGER streams_event_no_update BEFORE UPDATE ON streams_event
        BEGIN SELECT RAISE(ABORT, 'events are append-only'); END
        """,
        """
        CREATE TRIGGER streams_event_no_delete BEFORE DELETE ON streams_event
        BEGIN SELECT RAISE(ABORT, 'events are append-only'); END
        """,
        """
        CREATE TRIGGER streams_event_at_the_end BEFORE INSERT ON streams_event
        WHEN NEW.id <= (SELECT COALESCE(MAX(id), 0) FROM streams_event)
        BEGIN SELECT RAISE(ABORT, 'events are append-only'); END
        """,
    ],
    "postgresql": [
        """
        CREATE FUNCTION streams_event_refused() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'events are append-only'; END $$
        """,
        """
        CREATE FUNCTION streams_event_at_the_end() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF NEW.id <= (SELECT COALESCE(MAX(id), 0) FROM streams_event) THEN
                RAISE EXCEPTION 'events are append-only';
            END IF;
            RETURN NEW;
        END $$
        """,
        """
        CREATE TRIGGER streams_event_no_update BEFORE UPDATE OR DELETE ON streams_event
        FOR EACH ROW EXECUTE FUNCTION streams_event_refused()
        """,
        """
        CREATE TRIGGER streams_event_no_delete BEFORE TRUNCATE ON streams_event
        FOR EACH STATEMENT EXECUTE FUNCTION streams_event_refused()
        """,
        """
        CREATE TRIGGER streams_event_at_the_end BEFORE INSERT ON streams_event
        FOR EACH ROW EXECUTE FUNCTION streams_event_at_the_end()
        """,
    ],
}
LIFT = {
    "sqlite": [
        "DROP TRIGGER IF EXISTS streams_event_no_update",
        "DROP TRIGGER IF EXISTS streams_event_no_delete",
        "DROP TRIGGER IF EXISTS streams_event_at_the_end",
    ],
    "postgresql": [
        "DROP FUNCTION IF EXISTS streams_event_refused CASCADE",
        "DROP FUNCTION IF EXISTS streams_event_at_the_end CASCADE",
    ],
}


def run(statements):
    def change(apps, schema_editor):
        for statement in statements.get(schema_editor.connection.vendor, []):
            schema_editor.execute(statement)

    return change


class Migration(migrations.Migration):

    dependencies = [
        ("streams", "0004_events_chained"),
    ]

    operations = [
        migrations.RemoveField(model_name="event", name="old_workspace"),
        migrations.AlterField("event", "id", models.BigIntegerField(primary_key=True, serialize=False)),
        migrations.AddIndex(
            model_name="event",
            index=models.Index(fields=["workspace_id", "stream", "-id"], name="event_by_stream"),
        ),
        migrations.AddIndex(
            model_name="event",
            index=models.Index(fields=["workspace", "-id"], name="event_by_workspace"),
        ),
        migrations.RunPython(run(GUARD), run(LIFT)),
    ]

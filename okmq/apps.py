from django.apps import AppConfig


class OkmqConfig(AppConfig):
    name = "okmq"
    label = "okmq"

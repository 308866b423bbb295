"""The Django project of the MA: settings, urls, workers, checks. The only package that knows all others."""

from ma_site.celery import app as celery_app

__all__ = ["celery_app"]

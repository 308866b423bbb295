"""An installation of its own for the campaigns: they kill every process of it."""

from tests.product.conftest import house

__all__ = ["house"]

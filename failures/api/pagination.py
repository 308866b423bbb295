"""Pages by key: the cost of a page does not grow with its number, and a row that comes in between moves nothing."""

from rest_framework.pagination import CursorPagination


class KeysetPages(CursorPagination):
    page_size = 100
    page_size_query_param = "page_size"
    max_page_size = 500

"""Lists come in pages: short ones by number, those that grow without end by key."""

from rest_framework.pagination import CursorPagination, PageNumberPagination


class Pages(PageNumberPagination):
    """`?page_size=` up to 1,000. Counts the rows: for what people make by hand."""

    page_size = 100
    page_size_query_param = "page_size"
    max_page_size = 1000


class KeysetPages(CursorPagination):
    """The cost of a page does not grow with its number, and a row that comes in between moves nothing."""

    page_size = 100
    page_size_query_param = "page_size"
    max_page_size = 500

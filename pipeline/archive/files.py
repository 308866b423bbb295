"""Folders and files of a location, through Hadoop's FileSystem: a local folder, HDFS, S3A, whatever is
configured."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession


class ArchiveError(Exception):
    """The block stays as it is planned; the next run tries it again. The text says which block and why."""


# A file of this machine needs no JVM to be read: there are thousands of manifests after some years.
LOCAL = "file:"


@dataclass(frozen=True, slots=True)
class Entry:
    """`name`: the last part of its path."""

    name: str
    path: str
    bytes: int
    folder: bool


class Files:
    """Paths are relative to `url`, which may be a plain path of this machine. Raises ArchiveError where the
    location does not answer."""

    def __init__(self, session: SparkSession, url: str) -> None:
        self._session = session
        jvm: Any = session.sparkContext._jvm
        self._jvm = jvm
        configuration = session.sparkContext._jsc.hadoopConfiguration()
        try:
            root = jvm.org.apache.hadoop.fs.Path(url)
            self._system = root.getFileSystem(configuration)
            self.root = str(self._system.makeQualified(root).toString()).rstrip("/")
        except Py4JJavaError as error:
            raise ArchiveError(f"the archive {url} cannot be opened: {said(error)}") from error

    def url(self, path: str) -> str:
        return f"{self.root}/{path}" if path else self.root

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self.url(path))

    def exists(self, path: str) -> bool:
        return bool(self._asked(path, lambda: self._system.exists(self._path(path))))

    def list(self, path: str) -> list[Entry]:
        """Of a folder that is not there: nothing."""
        try:
            found = self._system.listStatus(self._path(path))
        except Py4JJavaError as error:
            if "FileNotFoundException" in str(error.java_exception.getClass().getName()):
                return []
            raise ArchiveError(f"{self.url(path)} cannot be listed: {said(error)}") from error
        return [_entry(status) for status in found]

    def walk(self, path: str) -> Iterator[Entry]:
        """Files below a folder, with paths as Spark tells them."""
        for entry in self.list(path):
            if entry.folder:
                yield from self.walk(f"{path}/{entry.name}")
            else:
                yield entry

    def read(self, path: str) -> str:
        if self.root.startswith(LOCAL):
            try:
                return Path(self.url(path).removeprefix(LOCAL)).read_text("utf-8")
            except (OSError, ValueError) as error:
                raise ArchiveError(f"{self.url(path)}: {error}") from error

        def act() -> str:
            stream = self._system.open(self._path(path))
            try:
                return bytes(stream.readAllBytes()).decode("utf-8")
            finally:
                stream.close()

        return str(self._asked(path, act))

    def write_new(self, path: str, text: str) -> bool:
        """Aside, then renamed: readers see all of it or nothing. False: it was there already and stays as it
        is."""
        if self.exists(path):
            return False
        folder, _, name = path.rpartition("/")
        aside = f"{folder}/.{name}.{uuid4().hex[:8]}"

        def act() -> bool:
            stream = self._system.create(self._path(aside), False)
            try:
                stream.write(bytearray(text.encode("utf-8")))
            finally:
                stream.close()
            return bool(self._system.rename(self._path(aside), self._path(path)))

        if self._asked(path, act):
            return True
        self.delete(aside)
        return False

    def move(self, path: str, to: str) -> None:
        def act() -> None:
            self._system.mkdirs(self._path(to.rpartition("/")[0]))
            if not self._system.rename(self._path(path), self._path(to)):
                raise ArchiveError(f"{self.url(path)} cannot be moved to {self.url(to)}")

        self._asked(path, act)

    def delete(self, path: str) -> None:
        """A folder with all that is in it; what is not there is gone already."""
        self._asked(path, lambda: self._system.delete(self._path(path), True))

    def _asked(self, path: str, act: Any) -> Any:
        try:
            return act()
        except Py4JJavaError as error:
            raise ArchiveError(f"{self.url(path)}: {said(error)}") from error


def said(error: Py4JJavaError) -> str:
    """The first line of what Java says."""
    text = str(error.java_exception.toString())
    return text.splitlines()[0][:500] if text else "no reason given"


def _entry(status: Any) -> Entry:
    path = status.getPath()
    return Entry(str(path.getName()), str(path.toString()), int(status.getLen()), bool(status.isDirectory()))

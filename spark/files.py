"""Small files and folders on whatever file system Spark writes to, through Hadoop's own client in the JVM."""

import errno
import os
import re
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

LOOKS = 3
"""How often a file is looked for that is there and cannot be opened: it may just be replaced."""

FLUSHES = 8
"""How many files are flushed at once: those that wait together cost a disk about as much as one."""

_MEANS_MORE = re.compile(r"[][{}*?\\]")


class Files:
    """One place of the history: a folder, or a URL that Spark's file systems take.

    Paths are relative to ``root``, with ``/``.
    """

    def __init__(self, session: SparkSession, root: str) -> None:
        context = session.sparkContext
        self._jvm: Any = context._jvm
        self.root = root.rstrip("/")
        self._gateway: Any = context._gateway
        self._configuration: Any = context._jsc.hadoopConfiguration()
        self._system: Any = self._path("").getFileSystem(self._configuration)

    def url(self, path: str) -> str:
        """The whole path, as Spark's writers take it."""
        return f"{self.root}/{path}" if path else self.root

    def pattern(self, path: str) -> str:
        """The whole path, as Spark's readers take it: for them some characters mean other files, too."""
        return _MEANS_MORE.sub(r"\\\g<0>", self.url(path))

    def read(self, path: str) -> str | None:
        """A file's text, or None where there is none.

        Raises:
            OSError: it is there and cannot be read, or nobody can tell; in a sentence.
        """
        for left in reversed(range(LOOKS)):
            try:
                return self._text(path)
            except Py4JJavaError as error:
                # Asking first would not do: a file that is being replaced is missing for a moment.
                is_missing = error.java_exception.getClass().getName() == "java.io.FileNotFoundException"
                if is_missing and not self.exists(path):
                    return None
                if not is_missing or not left:
                    said = str(error.java_exception.getMessage()).partition("\n")[0]
                    raise OSError(f"{self.url(path)}: {said}") from error
        raise AssertionError("unreachable")

    def _text(self, path: str) -> str:
        stream = self._system.open(self._path(path))
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, path: str, text: str) -> None:
        """Write a file whole: a reader sees the old one, or none, or all of the new one, also after the power went."""
        fresh = f"{path}.fresh"
        self._put(self._system, fresh, text)
        self._flush_files([fresh])
        self.rename(fresh, path)
        self.flush_names([path])

    def replace(self, path: str, text: str) -> None:
        """Write a file that is read all the time: a reader sees the old one or the new one, where that can be had.

        On a local file system it has no checksum: that is a file of its own, and two are not replaced at once. When
        the power went it may be the old one again.
        """
        fresh = f"{path}.fresh"
        if is_instance_of(self._gateway, self._system, "org.apache.hadoop.fs.ChecksumFileSystem"):
            plain = self._system.getRawFileSystem()
            self._put(plain, fresh, text)
            self._flush_files([fresh])
            plain.delete(self._system.getChecksumFile(self._path(path)), False)
            if not plain.rename(self._path(fresh), self._path(path)):
                raise OSError(f"{self.url(fresh)} could not be moved to {self.url(path)}")
            return
        self._put(self._system, fresh, text)
        if not self._overwrite(fresh, path):
            self.rename(fresh, path)

    def _put(self, system: Any, path: str, text: str) -> None:
        stream = system.create(self._path(path), True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def _overwrite(self, source: str, target: str) -> bool:
        """Move a file into the place of another in one step; False where the file system knows none."""
        hadoop = self._jvm.org.apache.hadoop.fs
        options = self._gateway.new_array(hadoop.Options.Rename, 1)
        options[0] = hadoop.Options.Rename.OVERWRITE
        try:
            context = hadoop.FileContext.getFileContext(self._system.getUri(), self._configuration)
        except Py4JJavaError as error:
            if error.java_exception.getClass().getSimpleName() == "UnsupportedFileSystemException":
                return False
            raise
        context.rename(self._path(source), self._path(target), options)
        return True

    def rename(self, source: str, target: str) -> None:
        """Move a file; what stood at the target is replaced.

        Raises:
            OSError: the file system refused.
        """
        if self._system.exists(self._path(target)):
            self._system.delete(self._path(target), False)
        else:
            self._system.mkdirs(self._path(target).getParent())
        if not self._system.rename(self._path(source), self._path(target)):
            raise OSError(f"{self.url(source)} could not be moved to {self.url(target)}")

    def exists(self, path: str) -> bool:
        return bool(self._system.exists(self._path(path)))

    def delete(self, path: str) -> bool:
        """Remove a file or a whole folder; False where there is none."""
        return bool(self._system.delete(self._path(path), True))

    def flush(self, paths: Collection[str]) -> None:
        """Have files outlive that the power goes, with what they hold and with their names.

        Where they are not in a folder of this machine nothing is done: what their file system keeps of a file that was
        closed, or moved, is all there is.

        Raises:
            OSError: the disk did not take them.
        """
        self._flush_files(paths)
        self.flush_names(paths)

    def flush_names(self, paths: Collection[str]) -> None:
        """The same for the names alone: of files that were moved, or that are no more."""
        if self._local is None or not paths:
            return
        folders = {folder for path in paths for folder in (self._local / path).parents}
        ours = {folder for folder in folders if folder.is_relative_to(self._local)}
        above = {self._local.parent} if os.access(self._local.parent, os.R_OK) else set()
        _flush(ours | above)

    def _flush_files(self, paths: Iterable[str]) -> None:
        if self._local is None:
            return
        files = [self._local / path for path in paths]
        checksums = [file.with_name(f".{file.name}.crc") for file in files]
        _flush([*files, *(each for each in checksums if each.exists())])

    @cached_property
    def _local(self) -> Path | None:
        """The folder on this machine, whose disk is told by Python, as Hadoop has no way to; None for any other."""
        uri = self._system.makeQualified(self._path("")).toUri()
        return Path(str(uri.getPath())) if uri.getScheme() == "file" else None

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self.url(path))


def _flush(paths: Collection[Path]) -> None:
    with ThreadPoolExecutor(FLUSHES) as several:
        list(several.map(_flush_one, paths))


def _flush_one(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    except OSError as error:
        if not path.is_dir() or error.errno not in {errno.EBADF, errno.EINVAL}:
            raise  # or it is a folder on a file system that flushes none
    finally:
        os.close(number)

"""jobs/common/stores.py: a key in a real object store does what a path on disk does."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.common import store_clients, stores
from jobs.common.errors import StoreError, UserError
from jobs.common.files import write_whole, written
from jobs.common.stores import StorePath, copy_tree, place_of, readable, remove_tree
from jobs.lakehouse import leases, tables
from jobs.lakehouse.reader import table_rows
from tests.lab.store_proxy import PASSING, Fault, StoreProxy
from tests.reaching import reached
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(params=["disk", "store"])
def place(request, tmp_path):
    """A new folder on disk, and one in the store: what follows holds for both."""
    return tmp_path / "lake" if request.param == "disk" else request.getfixturevalue("on_store")


def names(paths):
    return [path.name for path in paths]


def test_a_file_is_written_listed_read_and_deleted(place):
    (place / "a" / "b").mkdir(parents=True)
    file = place / "a" / "b" / "part-1.parquet"
    assert (file.name, file.parent.name, file.with_name("c").name) == ("part-1.parquet", "b", "c")
    assert not file.exists()
    assert not file.is_file()
    with pytest.raises(FileNotFoundError):
        file.read_bytes()
    with pytest.raises(FileNotFoundError):
        file.stat()
    file.write_bytes(b"1234")
    (place / "a" / "other").touch()
    assert (file.read_text(), file.stat().st_size, file.exists(), file.is_file(), file.is_dir()) == ("1234", 4, True, True, False)
    assert ((place / "a").is_dir(), (place / "a").is_file(), (place / "a").exists()) == (True, False, True)
    assert sorted(names((place / "a").iterdir())) == ["b", "other"]
    assert list(place.glob("*/b/*.parquet")) == [file]
    assert names(place.glob("a/other")) == ["other"]
    assert not list(place.glob("a/none"))
    assert len({file, place / "a" / "b" / "part-1.parquet"}) == 1
    assert pickle.loads(pickle.dumps(file)).read_bytes() == b"1234"
    file.unlink()
    file.unlink(missing_ok=True)
    assert not file.exists()
    remove_tree(place)
    assert not (place / "a" / "other").exists()
    remove_tree(place)


def test_a_file_is_replaced_as_a_whole(place):
    place.mkdir(parents=True)
    for content in (b"one", b"another"):
        write_whole(place / "mark", content)
        assert (place / "mark").read_bytes() == content
    with written(place / "file") as file:
        file.write(b"first ")
        file.write(b"second")
    assert (place / "file").open("rb").read() == b"first second"


def test_an_upload_that_an_error_ends_leaves_no_object(on_store):
    def fail(file):
        file.write(b"half")
        raise ValueError("in the middle")

    with pytest.raises(ValueError, match="in the middle"), written(on_store / "file") as file:
        fail(file)
    assert not (on_store / "file").exists()


def test_more_objects_than_a_page_of_the_store(on_store):
    for number in range(1_005):
        (on_store / f"{number:04d}").touch()
    assert len(list(on_store.iterdir())) == 1_005
    remove_tree(on_store)
    assert not on_store.is_dir()


def test_a_folder_is_copied_from_disk_to_the_store_and_back(on_store, tmp_path):
    tree = {"a": b"1", "deep/er/b": b"2" * 10_000, "left-out/c": b"3", "empty": b""}
    for name, content in tree.items():
        (tmp_path / "one" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "one" / name).write_bytes(content)
    copy_tree(tmp_path / "one", on_store / "two", without={"left-out"}.__contains__)
    copy_tree(on_store / "two", on_store / "three")
    copy_tree(on_store / "three", tmp_path / "four")
    copied = {str(path.relative_to(tmp_path / "four")): path.read_bytes() for path in (tmp_path / "four").rglob("*") if path.is_file()}
    assert copied == {name: content for name, content in tree.items() if not name.startswith("left-out")}


def test_arrow_and_duckdb_read_its_files(place):
    place.mkdir(parents=True)
    with written(place / "rows.parquet") as file:
        pq.write_table(pa.table({"number": [1, 2, 3]}), file)
    assert pq.read_metadata(readable(place / "rows.parquet")).num_rows == 3
    connection = duckdb.connect()
    stores.for_duckdb(connection, place, {})
    assert connection.execute("SELECT sum(number) FROM read_parquet($1)", [str(place / "rows.parquet")]).fetchall() == [(6,)]


def test_a_place_is_a_path_or_an_address_of_s3():
    assert place_of("some/folder") == Path("some/folder")
    assert place_of("C:/x") == Path("C:/x")
    for text in ("s3://lake/a/b", "s3a://lake/a/b/", "s3:/lake/a/b", "S3://lake/a/b"):
        assert place_of(text) == StorePath("lake", "a/b")
    assert str(place_of("s3://lake/a/b")) == "s3://lake/a/b"
    for text in ("gs://lake/a", "abfss://box@account/a", "hdfs://host/a"):
        with pytest.raises(UserError, match=r"only s3://BUCKET/PREFIX has been tried"):
            place_of(text)
    for text in ("s3://lake", "s3://lake/"):
        with pytest.raises(UserError, match="give a bucket and a prefix"):
            place_of(text)


def test_a_store_that_refuses_makes_an_error_of_one_line_that_names_the_place(on_store, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    store_clients.forget()
    with pytest.raises(OSError, match="signature we calculated does not match") as caught:
        (on_store / "a").write_bytes(b"")
    assert str(on_store / "a") in str(caught.value)
    assert "\n" not in str(caught.value)
    store_clients.forget()


@contextmanager
def through(store, *, patience="", **how):
    """Lets this process reach the store through a proxy, of which `how` says what it does. `patience`: seconds of it."""
    with StoreProxy(store.endpoint, **how) as proxy, reached(store, proxy.endpoint), pytest.MonkeyPatch.context() as patch:
        if patience:
            patch.setenv(store_clients.PATIENCE, patience)
        yield proxy


def test_a_listing_is_asked_once_for_the_sizes_of_its_files(store, on_store):
    for number in range(5):
        (on_store / "files" / str(number)).write_bytes(b"x" * number)
    with through(store) as proxy:
        assert [path.stat().st_size for path in (on_store / "files").glob("*")] == [0, 1, 2, 3, 4]
        assert proxy.counts() == {"LIST": 1}


def test_who_works_in_a_lakehouse_outlives_a_store_that_is_away(store, on_store):
    """Clients give up after ten tries, which take three seconds, unless they are told to be patient."""
    table = tables.ensure_table(on_store, "numbers", pa.schema([("number", pa.int32())]))
    with through(store, patience="600", faults=[Fault.UNAVAILABLE], fail_every=1) as proxy:

        def refused(part):
            return sum(part in request.path for request in proxy.requests())

        with ThreadPoolExecutor() as pool:
            mark = pool.submit((on_store / "mark").write_bytes, b"1")
            rows = pool.submit(tables.append, table, pa.table({"number": pa.array([1], pa.int32())}), "test", 0)
            wait_until(lambda: min(refused("/mark"), refused("/numbers")), lambda number: number >= 15)
            assert not mark.done()
            assert not rows.done()
            proxy.fail_every = 0
            assert mark.result() == 1
            assert rows.result()


def test_credentials_that_have_expired_are_told_at_once_however_patient_the_process_is(store, on_store):
    """Clients name their own `retry_timeout` behind every reason: no connection timed out here."""
    table = tables.ensure_table(on_store, "numbers", pa.schema([("number", pa.int32())]))
    with through(store, patience="600", faults=[Fault.EXPIRED], fail_every=1) as proxy:
        for ask in (
            lambda: (on_store / "mark").write_bytes(b"1"),
            (on_store / "mark").read_bytes,
            (on_store / "mark").stat,
            lambda: tables.append(table, pa.table({"number": pa.array([1], pa.int32())}), "test", 0),
        ):
            proxy.clear()
            with pytest.raises(StoreError, match=r"token has expired\.|the credentials may have expired \("):
                ask()
            assert len(proxy.requests()) <= 2


@pytest.mark.parametrize("fault", PASSING, ids=lambda fault: fault.name)
def test_one_request_in_eleven_may_fail_and_all_is_done_once(store, on_store, fault):
    """Lists, reads and writes, and the making of tables and rows: also where the answer is cut, or lost after all was done."""
    with through(store, patience="600", faults=[fault], fail_every=11) as proxy:
        proxy.hang = 0.2
        with leases.held([on_store / "_lock"], "busy"):
            table = tables.ensure_table(on_store, "numbers", pa.schema([("number", pa.int32())]))
            for number in range(6):
                tables.append(table, pa.table({"number": pa.array([number], pa.int32())}), "test", number)
                (on_store / "files" / str(number)).write_bytes(b"%d" % number)
        assert [path.read_bytes() for path in (on_store / "files").glob("*")] == [b"%d" % number for number in range(6)]
        assert fault in {one.fault for one in proxy.requests()}
    assert sorted(row["number"] for row in table_rows(table)) == list(range(6))


def test_a_store_that_ignores_conditions_is_refused(store, on_store):
    with through(store) as proxy:
        proxy.ignores_conditions = True
        with pytest.raises(UserError, match="this store ignores If-None-Match"), leases.held([on_store / "_lock"], "busy"):
            pass

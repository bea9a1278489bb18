"""A rival: DuckDB parses seven fields of each request line and groups by group and API. No state, no tables.

python -m bench.rivals.duckdb_parse INPUT [--fetch]

It looks at requests of groups; with --fetch at FETCH, too, which the pipeline reads for the positions of clients.
"""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb

QUERY = """
    WITH lines AS (
      SELECT column0 AS line FROM read_csv('{source}/*/*/kafka-request.log', header=false, delim='\x01', quote='', escape='',
                                           columns={{'column0': 'VARCHAR'}}, max_line_size=33554432)
      WHERE contains(column0, '_GROUP"') OR contains(column0, 'HEARTBEAT"') OR contains(column0, 'OFFSET_COMMIT"'){or_fetch}
    ), parsed AS (
      SELECT line[2:24] AS stamp, json_extract_string(substr(line, instr(line, '{{'), length(line) - instr(line, '{{') - 22),
        ['$.requestHeader.requestApiKeyName', '$.request.groupId', '$.request.memberId', '$.request.generationId',
         '$.response.errorCode', '$.connection', '$.totalTimeMs']) AS fields
      FROM lines
    )
    SELECT fields[2], fields[1], count(*), max(stamp), count(fields[3] || fields[4] || fields[5] || fields[6] || fields[7])
    FROM parsed GROUP BY ALL
"""

if __name__ == "__main__":
    source = Path(sys.argv[1]).resolve()
    or_fetch = """ OR contains(column0, '"FETCH"')""" if "--fetch" in sys.argv else ""
    groups = duckdb.sql(QUERY.format(source=source, or_fetch=or_fetch)).fetchall()
    print(f"{sum(row[2] for row in groups):,} requests of {len({row[0] for row in groups}):,} groups")

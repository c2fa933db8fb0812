"""Rows of refusals: what the programs say of options, inputs and outputs that cannot be, word by word."""

import shlex
import shutil
import tempfile
from pathlib import Path

import numpy as np

from append import files as A
from archive import files as F
from archive import traps
from golden import content, inputs, rows
from golden.rows import Row
from support import cdf, paths, tool

# Beside these lie in the folder: cube.nc, flat.nc, text.nc, empty.nc, cut.nc, half.nc, words.txt, days of an archive in
# `days`, two that disagree in `odd`, the stores s.zarr and old.zarr (format 2), its next day next.nc, and a folder `folder`.
COMMANDS = {
    "nc2zarr, command line": """
        nc2zarr
        nc2zarr --nosuch cube.nc out
        nc2zarr --chunk time=1 cube.nc out
        nc2zarr -x cube.nc out
        nc2zarr --chunks
        nc2zarr --json=yes cube.nc out
        nc2zarr nosuch.nc out
        nc2zarr '' out
        nc2zarr cube.nc ''
        nc2zarr cube.nc cube.nc
        nc2zarr cube.nc s.zarr
        nc2zarr cube.nc folder
        nc2zarr words.txt out
        nc2zarr empty.nc out
        nc2zarr cut.nc out
        nc2zarr half.nc out
        nc2zarr folder out
        nc2zarr 'no*.nc' out
        nc2zarr @nosuch.txt out
        nc2zarr @words.txt out
        nc2zarr -j 0 cube.nc out
        nc2zarr -j many cube.nc out
        nc2zarr --memory 0 cube.nc out
        nc2zarr --memory lots cube.nc out
        nc2zarr --memory 12XB cube.nc out
        nc2zarr --progress sometimes cube.nc out
    """,
    "nc2zarr, layout": """
        nc2zarr --zarr-format 4 cube.nc out
        nc2zarr --zarr-format two cube.nc out
        nc2zarr --chunks 0 cube.nc out
        nc2zarr --chunks time=0 cube.nc out
        nc2zarr --chunks time=1,time=2 cube.nc out
        nc2zarr --chunks depth=3 cube.nc out
        nc2zarr --chunks 1x2x3x4 cube.nc out
        nc2zarr --chunks nosuch:1x2x3 cube.nc out
        nc2zarr --chunks auto:0 cube.nc out
        nc2zarr --chunks auto:x cube.nc out
        nc2zarr --chunks time=99999999999999999999 cube.nc out
        nc2zarr --sample nosuch=3 cube.nc out
        nc2zarr --sample time=0 cube.nc out
        nc2zarr --sample time=3 --chunks 1x1x1 --variable tas cube.nc out
        nc2zarr --shards time=8 --zarr-format 2 cube.nc out
        nc2zarr --shards tas:3x3x3 --chunks tas:2x2x2 cube.nc out
        nc2zarr --shards never cube.nc out
        nc2zarr --codec lzma cube.nc out
        nc2zarr --codec zstd:99 cube.nc out
        nc2zarr --codec gzip:0x cube.nc out
        nc2zarr --codec blosc:snappy cube.nc out
        nc2zarr --codec blosc:lz4:99 cube.nc out
        nc2zarr --codec blosc:lz4:5:sideways cube.nc out
        nc2zarr --codec nosuch:zstd cube.nc out
    """,
    "nc2zarr, what is converted": """
        nc2zarr --variable nosuch cube.nc out
        nc2zarr --variable '' cube.nc out
        nc2zarr --exclude nosuch cube.nc out
        nc2zarr --exclude 'nosuch*' cube.nc out
        nc2zarr --rename tas cube.nc out
        nc2zarr --rename nosuch=a cube.nc out
        nc2zarr --rename tas=pr cube.nc out
        nc2zarr --rename tas=a --rename pr=a cube.nc out
        nc2zarr --rename tas=.zgroup cube.nc out
        nc2zarr --subset time cube.nc out
        nc2zarr --subset time=5:5 cube.nc out
        nc2zarr --subset time=::0 cube.nc out
        nc2zarr --subset time=1:2:3:4 cube.nc out
        nc2zarr --subset nosuch=1:2 cube.nc out
        nc2zarr --subset time=2030-01-01..2031-01-01 cube.nc out
        nc2zarr --subset time=2000-13-01..2001-01-01 cube.nc out
        nc2zarr --subset lat=nan..5 cube.nc out
        nc2zarr --stack x=tas,nosuch cube.nc out
        nc2zarr --stack tas cube.nc out
        nc2zarr --stack x=tas,tas cube.nc out
        nc2zarr --stack x=tas,mask cube.nc out
        nc2zarr --stack x=tas,pr cube.nc out
        nc2zarr --stack tas=tas,pr --unpack pr cube.nc out
        nc2zarr --stack x=tas@depth cube.nc out
        nc2zarr --stack x=tas@lat=nan cube.nc out
        nc2zarr --merge-along lat cube.nc out
        nc2zarr --merge-along nosuch=1,5 cube.nc out
        nc2zarr --merge-along lat=1,1 cube.nc out
    """,
    "nc2zarr, changes to the data": """
        nc2zarr --dtype float7 cube.nc out
        nc2zarr --dtype tas: cube.nc out
        nc2zarr --dtype tas:string cube.nc out
        nc2zarr --dtype tas:int16 cube.nc out
        nc2zarr --dtype pr:int8 --overflow maybe cube.nc out
        nc2zarr --dtype nosuch:float32 cube.nc out
        nc2zarr --dtype pr:int8 flat.nc out
        nc2zarr --unpack nosuch cube.nc out
        nc2zarr --unpack tas cube.nc out
        nc2zarr --unpack pr --dtype pr:int16 cube.nc out
        nc2zarr --keepbits 0 cube.nc out
        nc2zarr --keepbits 99 cube.nc out
        nc2zarr --keepbits pr:3 cube.nc out
        nc2zarr --keepbits tas:three cube.nc out
        nc2zarr --fill-value 3 cube.nc out
        nc2zarr --fill-value tas:words cube.nc out
        nc2zarr --fill-value pr:99999 cube.nc out
        nc2zarr --fill-value nosuch:1 cube.nc out
        nc2zarr --statistics-range time=0..5 cube.nc out
        nc2zarr --statistics --statistics-range nosuch=0..5 cube.nc out
        nc2zarr --statistics --statistics-range time cube.nc out
        nc2zarr --char maybe text.nc out
        nc2zarr --dtype text:float32 text.nc out
        nc2zarr --unpack text text.nc out
    """,
    "nc2zarr, many files": """
        nc2zarr --survey nosuch
        nc2zarr --survey folder
        nc2zarr --survey words.txt
        nc2zarr --survey --append time days/*.nc
        nc2zarr odd out
        nc2zarr days cube.nc out
        nc2zarr --along nosuch days out
        nc2zarr --along lat days out
        nc2zarr --new-dim time days out
        nc2zarr --new-dim n=nosuch* days out
        nc2zarr --new-dim n=@nosuch days out
        nc2zarr --new-dim time=%Q days out
        nc2zarr --order sideways days out
        nc2zarr --store-per nosuch days out
        nc2zarr --store-per '{nosuch}' days out
        nc2zarr --promote nosuch days out
        nc2zarr --file-attr nosuch days out
        nc2zarr --time-units furlongs days out
        nc2zarr --time-units 'days since when' days out
        nc2zarr --packing maybe days out
        nc2zarr --missing maybe days out
        nc2zarr --static maybe days out
        nc2zarr --static nosuch:first days out
        nc2zarr --tolerance x days out
        nc2zarr --overlap both days out
        nc2zarr --gaps maybe days out
        nc2zarr --bad-file maybe days out
        nc2zarr days cut.nc out
        nc2zarr days empty.nc out
        nc2zarr --offline maybe days out
        nc2zarr --attrs maybe days out
        nc2zarr --strict --strict=1 days out
        nc2zarr --survey-cache folder days out
    """,
    "nc2zarr, growing": """
        nc2zarr --append time next.nc nosuch.zarr
        nc2zarr --append nosuch next.nc s.zarr
        nc2zarr --append lat next.nc s.zarr
        nc2zarr --append time --chunks time=2 next.nc s.zarr
        nc2zarr --append time --overwrite next.nc s.zarr
        nc2zarr --append time --resume next.nc s.zarr
        nc2zarr --append time --codec none next.nc s.zarr
        nc2zarr --append time --zarr-format 2 next.nc s.zarr
        nc2zarr --append time --append-rest maybe next.nc s.zarr
        nc2zarr --append-rest hold cube.nc out
        nc2zarr --recheck cube.nc out
        nc2zarr --append time cube.nc s.zarr
        nc2zarr --append time flat.nc s.zarr
        nc2zarr --append time changed.nc s.zarr
        nc2zarr --append time --gaps error far.nc s.zarr
        nc2zarr --append time next.nc words.txt
        nc2zarr --append time --replace time=0:1 next.nc s.zarr
        nc2zarr --replace time next.nc s.zarr
        nc2zarr --replace time=0:1 next.nc s.zarr
        nc2zarr --replace time=0:1 --statistics next.nc s.zarr
        nc2zarr --replace time=0:99 next.nc s.zarr
        nc2zarr --replace nosuch=0:1 next.nc s.zarr
        nc2zarr --replace time=0:2:2 changed.nc s.zarr
        nc2zarr --replace time=2030-01-01..2031-01-01 changed.nc s.zarr
        nc2zarr --replace time=0:1 changed.nc nosuch.zarr
        nc2zarr --part 0/3 cube.nc out
        nc2zarr --part 4/3 cube.nc out
        nc2zarr --part x cube.nc out
        nc2zarr --parts 3 cube.nc out
        nc2zarr --part 1/2 --replace time=0:1 changed.nc s.zarr
        nc2zarr --part 1/2 --append time --statistics next.nc s.zarr
        nc2zarr --parts-status nosuch.zarr
        nc2zarr --parts-status cube.nc s.zarr
        nc2zarr --consolidate
        nc2zarr --consolidate nosuch.zarr
        nc2zarr --consolidate folder
        nc2zarr --consolidate --chunks 3 s.zarr
    """,
    "nc2zarr, verification and references": """
        nc2zarr --verify some cube.nc out
        nc2zarr --check cube.nc nosuch.zarr
        nc2zarr --check cube.nc s.zarr
        nc2zarr --check flat.nc old.zarr
        nc2zarr --check --dry-run cube.nc s.zarr
        nc2zarr --check --codec none cube.nc s.zarr
        nc2zarr --certificate c.json cube.nc out
        nc2zarr --verify full --certificate words.txt cube.nc out
        nc2zarr --virtual xml cube.nc out.json
        nc2zarr --virtual json --chunks 3 cube.nc out.json
        nc2zarr --virtual json --dtype float64 cube.nc out.json
        nc2zarr --virtual json --statistics cube.nc out.json
        nc2zarr --virtual json cube.nc words.txt
        nc2zarr --base-url s3://b/c cube.nc out
        nc2zarr --virtual json --base-url nosuch cube.nc out.json
        nc2zarr --trace words.txt cube.nc out
        nc2zarr --scratch nosuch cube.nc out
        nc2zarr --scratch-size x cube.nc out
        nc2zarr --timeout never cube.nc out
        nc2zarr --concurrency 0 cube.nc out
        nc2zarr --checksum sha1 cube.nc out
        nc2zarr ftp://host/a.nc out
        nc2zarr s3:// out
        nc2zarr cube.nc https://host/out.zarr
    """,
    "nc2zarr, references that grow": """
        nc2zarr --virtual icechunk --append time rows_4.nc icechunk:refs
        nc2zarr --virtual icechunk --append time --base-url s3://bucket/other rows_4.nc icechunk:refs
        nc2zarr --virtual icechunk --append time --base-url s3://bucket/in rows_7.nc icechunk:refs
        nc2zarr --virtual icechunk --append time --base-url s3://bucket/in rows_7.f4.nc icechunk:refs
        nc2zarr --virtual icechunk --append time --base-url nosuch rows_4.nc icechunk:refs
        nc2zarr --virtual icechunk --append time --verify full rows_4.nc icechunk:refs
        nc2zarr --virtual icechunk --append time --merge-along x=1,2 rows_4.nc icechunk:refs
        nc2zarr --virtual icechunk --append time --chunks v:1x9 rows_4.nc icechunk:refs
        nc2zarr --virtual icechunk --append time rows_4.nc s.zarr
        nc2zarr --virtual icechunk --append time rows_4.nc icechunk:nosuch
        nc2zarr --virtual icechunk --append nosuch rows_4.nc icechunk:refs
        nc2zarr --virtual icechunk --append time --part 1/2 rows_4.nc icechunk:refs
        nc2zarr --virtual icechunk --replace time=0:3 rows_0.nc icechunk:refs
        nc2zarr --virtual json --append time rows_4.nc icechunk:refs
    """,
    "rechunk": """
        rechunk
        rechunk s.zarr
        rechunk nosuch.zarr out
        rechunk folder out
        rechunk words.txt out
        rechunk s.zarr s.zarr
        rechunk s.zarr old.zarr
        rechunk s.zarr s.zarr/inside
        rechunk --chunks nosuch:1 s.zarr out
        rechunk --codec keep s.zarr out
        rechunk --codec lzma s.zarr out
        rechunk --shards 4x4x4 --zarr-format 2 s.zarr out
        rechunk --zarr-format 1 s.zarr out
        rechunk --variable nosuch s.zarr out
        rechunk --rename tas=time s.zarr out
        rechunk --subset time=9:12 s.zarr out
        rechunk --digest
        rechunk --digest nosuch.zarr
        rechunk --digest --chunks 3 s.zarr
        rechunk --append time s.zarr nosuch.zarr
        rechunk --append nosuch s.zarr old.zarr
        rechunk --append time s.zarr s.zarr
        rechunk --dtype float7 s.zarr out
        rechunk --stack x=tas,ground s.zarr out
        rechunk --survey s.zarr out
    """,
    "chunkcalc": """
        chunkcalc
        chunkcalc --sample
        chunkcalc --sample 0x3
        chunkcalc --sample 64x64 --shape 10
        chunkcalc --sample lat=3 --shape 10x10
        chunkcalc --sample 3x3 --dtype float7
        chunkcalc --sample 3x3 --itemsize 0
        chunkcalc --sample 3x3 --align sideways
        chunkcalc --sample 3x3 --batch 0
        chunkcalc --sample 3x3 --step-time soon
        chunkcalc --sample 3x3 --chunks 0x1
        chunkcalc --sample 3x3 --chunks 1x2x3
        chunkcalc --sample 3x3 --recommend --objective beauty
        chunkcalc --sample 3x3 --shape 9x9 --recommend --min-bytes 9MiB --max-bytes 1MiB
        chunkcalc --read x@3x3
        chunkcalc --read 0@3x3
        chunkcalc --sample 3x3 --storage tape
        chunkcalc --sample 3x3 --latency x
        chunkcalc --sample 3x3 --ratio 0
        chunkcalc --sample 3x3 --format xml
        chunkcalc --sample 3x3 --plot plot.gif
        chunkcalc --sample 3x3 --plot words.txt
        chunkcalc --audit --sample 3x3
        chunkcalc --sample 3x3 nosuch.zarr
        chunkcalc --sample 3x3 --variable nosuch s.zarr
        chunkcalc --sample 3x3 folder
    """,
    "readbench": """
        readbench
        readbench s.zarr
        readbench --no-out --sample time=2 nosuch.zarr
        readbench --no-out --sample time=99 s.zarr
        readbench --no-out --sample depth=1 s.zarr
        readbench --no-out --sample time=2 --variable nosuch s.zarr
        readbench --no-out --sample time=2 --batch 0 s.zarr
        readbench --no-out --sample time=2 --epochs 0 s.zarr
        readbench --no-out --sample time=2 --order sideways s.zarr
        readbench --no-out --sample time=2 --loader slow s.zarr
        readbench --no-out --sample time=2 --mode hope s.zarr
        readbench --no-out --sample time=2 --workers x s.zarr
        readbench --no-out --sample time=2 --lags 99 s.zarr
        readbench --no-out --sample time=2 --step-time x s.zarr
        readbench --no-out --sample time=2 --rank 3 --world-size 2 s.zarr
        readbench --no-out --sample time=2 --engine nosuch s.zarr
        readbench --no-out --sample time=2 --io tape s.zarr
        readbench --no-out --sample time=2 --cache-policy mru s.zarr
        readbench --no-out --sample time=2 --emulate tape s.zarr
        readbench --no-out --sample time=2 --device tpu s.zarr
        readbench --no-out --sample time=2 --cast int3 s.zarr
        readbench --no-out --sample time=2 --sweep nosuch=1,2 s.zarr
        readbench --no-out --sample time=2 --pool none s.zarr
        readbench --out words.txt --sample time=2 s.zarr
        readbench --compare s.zarr
        readbench --compare nosuch s.zarr
        readbench --advise --cpus 0
        readbench --no-out --out x --sample time=2 s.zarr
        readbench --no-out --sample time=2 --cold --warm s.zarr
    """,
}


def write(folder):
    inputs.write_files(folder)
    for name, other in (("cube_cdf1.nc", "cube.nc"), ("cube_cdf2.nc", None), ("cube_cdf5.nc", None), ("traps.nc", None)):
        (folder / name).rename(folder / other) if other else (folder / name).unlink()
    text = ("text", "S1", ("x", "n"), np.array([[b"a", b"b"]] * 3, "S1"))
    (folder / "text.nc").write_bytes(cdf.Cdf(1, {"x": 3, "n": 2}, [text]).build())
    (folder / "empty.nc").write_bytes(b"")
    (folder / "cut.nc").write_bytes((folder / "cube.nc").read_bytes()[:200])
    (folder / "half.nc").write_bytes((folder / "cube.nc").read_bytes()[:60000])
    (folder / "words.txt").write_text("these are\nwords\n")
    (folder / "folder").mkdir()
    F.write_all(F.clean(3), folder / "days")
    F.write_all(traps.TRAPS["units are hours"].plant(traps.TRAPS["packing"].plant(F.clean(2), 1), 1), folder / "odd")
    for name, first, n, kind in (("rows_0", 0, 4, "f8"), ("rows_4", 4, 4, "f8"), ("rows_7", 4, 3, "f8"), ("rows_7.f4", 4, 3, "f4")):
        variables = [("time", "f8", ("time",), np.arange(first, first + n)), ("v", kind, ("time", "x"), np.full((n, 2000), first))]
        (folder / f"{name}.nc").write_bytes(cdf.Cdf(1, {"time": n, "x": 2000}, variables).build())
    tool.nc2zarr("-q", "--virtual", "icechunk", "--base-url", "s3://bucket/in", folder / "rows_0.nc", f"icechunk:{folder / 'refs'}").ok()
    files = A.days(folder, 0, 4, each=2)
    A.day(folder / "next.nc", 4)
    A.day(folder / "far.nc", 9)
    A.day(folder / "changed.nc", 0, data=A.values(0, 1) + 1)
    for name, options in (("s.zarr", []), ("old.zarr", ["--zarr-format", "2"]), ("damaged.zarr", [])):
        tool.nc2zarr("-q", *rows.USUAL, *options, *files, folder / name).ok()
    (folder / "damaged.zarr/tas/zarr.json").write_text('{"zarr_format": 3, "node_type": "array"')


class Bench(rows.Bench):
    def __init__(self, folder):
        super().__init__(folder)
        self.names = list(COMMANDS)
        write(folder)
        self.listing = content.listing(folder)

    def refusal(self, line):
        """In a copy of the folder; what changed there is said, too, for a refusal changes nothing."""
        with tempfile.TemporaryDirectory() as copy:
            copy = Path(copy) / "in"
            shutil.copytree(self.folder, copy)
            program, *options = shlex.split(line)
            every = [p for o in options for p in (sorted(str(f.relative_to(copy)) for f in copy.glob(o)) if "*.nc" in o and "/" in o else [o])]
            run = tool.run(program, *every, cwd=copy)
            after = content.listing(copy)
            changed = sorted(k for k in after.keys() | self.listing.keys() if after.get(k) != self.listing.get(k))
            text = (run.err or run.out).replace(str(copy), ".").replace(f"{paths.BUILD}/bin/", "") + "".join(f"[changed: {name}]\n" for name in changed)
            return Row(run.status, text=text)

    def run(self, name, facts, blessed):
        return {line: self.refusal(line) for line in map(str.strip, COMMANDS[name].strip().splitlines())}

"""`fencepost replay`: what a subscription would have done with fixes that were recorded.

No server is involved and nobody is asked for a grant: whoever has the trace knows already where everything was.
"""

import argparse
from pathlib import Path

import msgspec

from matcher.errors import SelectorInvalid
from matcher.once import Mode, Tos
from matcher.region_features import IdDuplicate, named
from matcher.replaying import Counts, Replay, ReplayZones, Told
from matcher.selector.attributes import attributes_in
from matcher.selector.format import format_zone_ref
from matcher.selector.mentions import distances, zone_refs
from matcher.selector.parser import parse_selector
from matcher.selector.tree import InlineZone, NamedZone, Selector
from server.cli.files import FileUnreadable, read_file
from server.cli.output import add_json_argument, explain, print_json
from server.cli.progress import Progress
from server.cli.traces import Trace, write_told
from server.errors import OptionInvalid, ZoneNotFound
from server.pubsub.subscriptions import NewSubscription, check_boundary_options, service_of
from zones.errors import CallerError, GeoJsonInvalid, RingRepeatsPoint
from zones.geojson import Feature, features_from_geojson, without_repeats
from zones.names import SYSTEM, check_local_name, fold, importable, shown
from zones.shapes import Shape
from zones.validation import check_shape

__all__ = ["add_arguments", "run"]

_BOM = b"\xef\xbb\xbf"
_SHOWN = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Take recorded fixes through a subscription, and print what it would have told and what would have been sent."
    )
    parser.add_argument(
        "--zones",
        required=True,
        metavar="FILE",
        help=f"a GeoJSON FeatureCollection, .gz too; - is stdin. Zones are called {SYSTEM}.<feature id>",
    )
    parser.add_argument(
        "--trace", required=True, metavar="FILE", help="Parquet with oid, ts (epoch ms), lon, lat; others are pairs"
    )
    parser.add_argument("--selector", required=True, help=f"for example '(*) within ({SYSTEM}.*)'")
    parser.add_argument(
        "--tos", choices=[str(tos) for tos in Tos], default=str(Tos.ONCE), help="the type of service (default: once)"
    )
    parser.add_argument("--modes", type=_modes, metavar="LIST", help="of tos once: enter, leave (default: both)")
    parser.add_argument(
        "--dwell-s", type=float, default=0.0, metavar="S", help="seconds inside before an enter (default: 0)"
    )
    parser.add_argument(
        "--hysteresis-m",
        type=float,
        default=0.0,
        metavar="M",
        help="metres around the boundary in which nothing changes",
    )
    parser.add_argument(
        "--unc-factor", type=float, default=0.0, metavar="K", help="widen that by so many times a fix's unc"
    )
    parser.add_argument("--crossing", action="store_true", help="tell also what was passed through between two fixes")
    parser.add_argument(
        "--stale-s",
        type=float,
        default=300.0,
        metavar="S",
        help="how long a place is good for a distance (default: 300)",
    )
    parser.add_argument("--out", metavar="FILE", help="write the notifications as Parquet")
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    new = NewSubscription(
        name="replay",
        selector=args.selector,
        tos=Tos(args.tos),
        modes=args.modes,
        dwell_s=args.dwell_s,
        hysteresis_m=args.hysteresis_m,
        unc_factor=args.unc_factor,
        crossing=args.crossing,
        stale_s=args.stale_s,
    )
    selector = _parse(args.selector)
    try:
        service = service_of(new)
        check_boundary_options(new, selector)
    except OptionInvalid as error:
        explain(f"fencepost: {error.sentence} {error.hint}")
        return 2
    if args.out is not None and not Path(args.out).resolve().parent.is_dir():
        explain(f"fencepost: There is no folder {Path(args.out).parent} to write {Path(args.out).name} to.")
        return 1
    zones = _zones(args.zones, selector)
    trace = Trace(args.trace, attributes_in(selector))
    for name in trace.unknown:
        explain(f"{args.trace} has no column {name}: the selector's {name} is unknown in every fix.")
    replay = Replay(selector, service, zones, trace.oids() if distances(selector) else ())
    told: list[Told] = []
    with Progress("Replaying", len(trace)) as progress:
        done = 0
        for events in trace.events():
            told += replay.take(events)
            done += len(events)
            progress.at(done)
        told += replay.end()
    if args.out is not None:
        # A dwell's enter is dated before the event that brought it; what is of one moment stays as it came.
        write_told(args.out, sorted(told, key=lambda each: each.ts))
    if args.json:
        print_json(msgspec.to_builtins(replay.counts))
    else:
        _print(replay.counts)
    return 0


def _print(counts: Counts) -> None:
    late = f" ({counts.late:,} late)" if counts.late else ""
    print(f"{counts.samples:,} fixes of {counts.objects:,} objects{late}")
    print(f"told: {counts.enters:,} enters, {counts.leaves:,} leaves, {counts.matches:,} matches")
    sent = counts.messages
    print(f"sent: {sent.server:,} messages if the server evaluates")
    print(f"      {sent.device:,} reports and {sent.dispatch:,} plans if devices do")


def _parse(text: str) -> Selector:
    try:
        return parse_selector(text)
    except SelectorInvalid as error:
        if text.isprintable():
            explain(f"{text}\n{' ' * (error.column - 1)}^")
        raise


def _zones(file: str, selector: Selector) -> ReplayZones:
    zones = ReplayZones(_shapes(file), selector)
    for ref in zone_refs(selector):
        if isinstance(ref, InlineZone):
            check_shape(ref.shape)
        elif not zones.resolve(ref) and (isinstance(ref, NamedZone) or fold(ref.owner) != fold(SYSTEM)):
            raise ZoneNotFound(
                f"The selector names {format_zone_ref(ref)}, which is not in {file}.",
                hint=f"Its zones are called {SYSTEM}.<feature id>.",
                zone=format_zone_ref(ref),
            )
    return zones


def _shapes(file: str) -> dict[str, Shape]:
    """The shapes by their zones' local names."""
    try:
        document = msgspec.json.decode(read_file(file).removeprefix(_BOM))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise FileUnreadable(f"{file} is not JSON.", hint="Give a GeoJSON FeatureCollection in UTF-8.") from None
    shapes: dict[str, Shape] = {}
    folded: set[str] = set()
    renamed = []
    try:
        for index, feature in enumerate(_features(document)):
            if feature.name is None:
                raise GeoJsonInvalid(f"Feature {index} has no id.", hint="Zones are named by the ids of features.")
            local = check_local_name(importable(feature.name))
            if fold(local) in folded:
                raise IdDuplicate(f"Two zones are called {shown(local)}.", hint="Give each feature an id of its own.")
            if local != feature.name:
                renamed.append(f"'{feature.name}' is called {SYSTEM}.{local}")
            folded.add(fold(local))
            shapes[local] = feature.shape
    except CallerError as error:
        raise named(error, file) from None
    for sentence in renamed[:_SHOWN]:
        explain(f"{sentence}, because a zone's own name has no dot.")
    if len(renamed) > _SHOWN:
        explain(f"So it is with {len(renamed) - _SHOWN:,} more.")
    return shapes


def _features(document: object) -> list[Feature]:
    try:
        return features_from_geojson(document)
    except RingRepeatsPoint:
        document, changed = without_repeats(document)
        features = features_from_geojson(document)
        explain(f"Points that repeat the one before are left out, in {changed:,} zones; an import refuses them.")
        return features


def _modes(text: str) -> tuple[Mode, ...]:
    try:
        return tuple(Mode(word.strip()) for word in text.split(",") if word.strip())
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a list of enter and leave") from None

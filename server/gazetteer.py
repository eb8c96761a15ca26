"""The gazetteer of the settings, read when the server starts."""

import gzip
import zlib
from pathlib import Path

from matcher.geocoding import Gazetteer, GazetteerInvalid, places_from_csv, places_from_geojson

__all__ = ["load_gazetteer"]

_GZIP = b"\x1f\x8b"


def load_gazetteer(file: str) -> Gazetteer:
    """From CSV or GeoJSON, packed by gzip or not; which of them it is can be seen from its beginning."""
    data = Path(file).read_bytes()
    try:
        data = gzip.decompress(data) if data[:2] == _GZIP else data
        is_json = data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")
        return Gazetteer(places_from_geojson(data) if is_json else places_from_csv(data))
    except GazetteerInvalid as error:
        raise GazetteerInvalid(f"{file}: {error.sentence}", hint=error.hint) from None
    except (OSError, EOFError, zlib.error):
        raise GazetteerInvalid(f"{file} is a gzip file with a part missing.", hint="Copy it again.") from None

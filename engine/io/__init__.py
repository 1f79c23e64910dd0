"""Files and formats: records, checksums, examples, images."""

from .crc32c import crc32c as crc32c
from .crc32c import masked_crc32c as masked_crc32c
from .example import decode_example as decode_example
from .example import decode_feature_lists as decode_feature_lists
from .example import encode_example as encode_example
from .example import encode_sequence_example as encode_sequence_example
from .records import RecordScanner as RecordScanner
from .records import RecordWriter as RecordWriter
from .records import read_records as read_records

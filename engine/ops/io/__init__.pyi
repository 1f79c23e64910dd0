from . import checkpoints as checkpoints
from . import csv as csv
from . import files as files
from . import image_files as image_files
from . import parse as parse
from . import parse_sequences as parse_sequences
from . import sparse_rows as sparse_rows
from . import summaries as summaries

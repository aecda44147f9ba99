"""Makes hot_support importable, whatever the import mode of the run."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

"""Types of the public names, which `__init__.py` imports on first use."""

from bt_acme import behaviors as behaviors
from bt_acme.api import plots as plots
from bt_acme.api import video as video
from bt_acme.api.banks import Bank as Bank
from bt_acme.api.card_text import describe as describe
from bt_acme.api.continual import continual as continual
from bt_acme.api.evaluating import Evaluation as Evaluation
from bt_acme.api.evaluating import evaluate as evaluate
from bt_acme.api.loading import load_behavior as load_behavior
from bt_acme.api.runs import Run as Run
from bt_acme.api.runs import load_run as load_run
from bt_acme.api.training import pretrain as pretrain
from bt_acme.api.training import train as train
from bt_acme.api.training import transfer as transfer
from bt_acme.api.versions import show_versions as show_versions
from bt_acme.environments import registry as _registry
from bt_acme.version import __version__ as __version__

register_environment = _registry.register

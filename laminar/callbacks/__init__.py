"""Objects that follow training, and may steer it."""

from .backup_and_restore import BackupAndRestore as BackupAndRestore
from .callback import Callback as Callback
from .callback_list import CallbackList as CallbackList
from .csv_logger import CSVLogger as CSVLogger
from .dashboard import Dashboard as Dashboard
from .early_stopping import EarlyStopping as EarlyStopping
from .history import History as History
from .lambda_callback import LambdaCallback as LambdaCallback
from .learning_rate_scheduler import LearningRateScheduler as LearningRateScheduler
from .model_checkpoint import ModelCheckpoint as ModelCheckpoint
from .progress import ProgbarLogger as ProgbarLogger
from .reduce_lr_on_plateau import ReduceLROnPlateau as ReduceLROnPlateau
from .remote_monitor import RemoteMonitor as RemoteMonitor
from .swap_ema_weights import SwapEMAWeights as SwapEMAWeights
from .tensorboard import TensorBoard as TensorBoard
from .terminate_on_nan import TerminateOnNaN as TerminateOnNaN

// Training: Model, callbacks, metrics, checkpoints, the profiler of precision.
#pragma once

#include "frontend/state/checkpoint.h"
#include "frontend/state/checkpoint_folder.h"
#include "frontend/state/name_map.h"
#include "frontend/train/callback.h"
#include "frontend/train/checkpoint_callback.h"
#include "frontend/train/class_scores.h"
#include "frontend/train/confusion_matrix.h"
#include "frontend/train/error_metrics.h"
#include "frontend/train/loss_metrics.h"
#include "frontend/train/mean_iou.h"
#include "frontend/train/metric.h"
#include "frontend/train/model.h"
#include "frontend/train/precision_profiler.h"
#include "frontend/train/request_exit.h"
#include "frontend/train/roc_auc.h"
#include "frontend/train/top_k.h"

// Transforms of pictures. The names and defaults are those of MindSpore's mindspore.dataset.vision.
//
//   auto train =
//       data::ImageFolderDataset("flowers/train")
//           .Map({vision::Decode(), vision::RandomResizedCrop({224, 224}, {.seed = 1}),
//                 vision::RandomHorizontalFlip(0.5f, /*seed=*/1), vision::Rescale(1.0f / 255),
//                 vision::Normalize({0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}), vision::HWC2CHW()},
//                "image", {.num_parallel_workers = 4});
//
// A transform is a function of one tensor, or of a tensor and the position of its row where it draws random numbers. It
// is safe to call from several threads. What a transform is given is checked when it is called.
#pragma once

#include "frontend/data/vision/augment.h"
#include "frontend/data/vision/color.h"
#include "frontend/data/vision/crop.h"
#include "frontend/data/vision/decode.h"
#include "frontend/data/vision/erase.h"
#include "frontend/data/vision/flip.h"
#include "frontend/data/vision/mix.h"
#include "frontend/data/vision/pad.h"
#include "frontend/data/vision/resize.h"
#include "frontend/data/vision/rotation.h"
#include "frontend/data/vision/values.h"

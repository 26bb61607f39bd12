// Datasets, transforms of pictures, and the files of data that come with mpc.
#pragma once

#include "frontend/data/cifar.h"
#include "frontend/data/csv.h"
#include "frontend/data/dataset.h"
#include "frontend/data/digits.h"
#include "frontend/data/find_data.h"
#include "frontend/data/image_folder.h"
#include "frontend/data/mnist.h"
#include "frontend/data/numpy_slices.h"
#include "frontend/data/text.h"
#include "frontend/data/vision/vision.h"

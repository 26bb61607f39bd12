// Rows that are slices of arrays along axis 0: tensors, and NumPy's .npy and .npz files. NumpySlicesDataset is
// MindSpore's; files, `mapped` and `refuse_nan` have no counterpart there.
#pragma once

#include <string>
#include <vector>

#include "frontend/data/dataset.h"
#include "frontend/data/sampler.h"
#include "frontend/graph/tensor.h"

namespace mpc::data {

struct NumpySlicesOptions {
  SamplingOptions sampling;
  /// Map the file in place of reading it: rows are read when they are asked for. Deflated members of an .npz archive
  /// are inflated all the same. Stored ones are not compared with their checksums, which would read them.
  bool mapped = false;
  bool refuse_nan = false;  ///< whether a NaN is an error of its row
};

/// Row i holds slice i of each array. `column_names` are column_0, column_1, ... if none are given. MindSpore shuffles
/// by default. Errors: no array; an array without rows or of rank 0; arrays with different numbers of rows; another
/// number of names than arrays.
Dataset NumpySlicesDataset(const std::vector<Tensor>& data, const ColumnNames& column_names = {},
                           const NumpySlicesOptions& options = {});

/// The slices of a file, in C or Fortran order. An .npy file is one column. The columns of an .npz archive are its
/// members in their order, or those that `column_names` names. Errors beyond those above name the file. It is missing,
/// empty, truncated or damaged. It has an element type that Tensor::Load refuses, or lacks a member that is named.
Dataset NumpySlicesDataset(const std::string& path, const ColumnNames& column_names = {},
                           const NumpySlicesOptions& options = {});

}  // namespace mpc::data

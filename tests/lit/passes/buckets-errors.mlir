// RUN: mpc-opt %s --mpc-buckets --verify-diagnostics --split-input-file
// RUN: not mpc-opt %s --split-input-file --mpc-buckets=bucket-mib=-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not mpc-opt %s --split-input-file --mpc-buckets=bucket-mib=1048577 2>&1 | FileCheck %s --check-prefix=LARGE

// NEGATIVE: error: bucket-mib must be from 0 (every collective is a message of its own) to 1048576, got -1
// LARGE: error: bucket-mib must be from 0 (every collective is a message of its own) to 1048576, got 1048577

// expected-error @+1 {{mpc-buckets orders one block of operations, got 2}}
func.func @two_blocks(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
^unreachable:
  return %x : tensor<4xf32>
}

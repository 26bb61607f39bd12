// RUN: not mpc-opt %s --mpc-amp="level=O1 keep-batchnorm-fp32=true" 2>&1 | FileCheck %s --check-prefix=O1
// RUN: not mpc-opt %s --mpc-amp="level=auto keep-batchnorm-fp32=false" 2>&1 | FileCheck %s --check-prefix=AUTO
// RUN: not mpc-opt %s --mpc-amp="level=02" 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not mpc-opt %s --mpc-amp="level=o4" 2>&1 | FileCheck %s --check-prefix=O4
// RUN: not mpc-opt %s --mpc-amp="level=O2 dtype=fp16" 2>&1 | FileCheck %s --check-prefix=DTYPE
// RUN: not mpc-opt %s --mpc-amp="level=O2 keep-batchnorm-fp32=maybe" 2>&1 | FileCheck %s --check-prefix=KEEP
// RUN: not mpc-opt %s --mpc-amp="level=auto bytes-per-second=1e-9" 2>&1 | FileCheck %s --check-prefix=COST
// RUN: mpc-opt %s --mpc-amp="level=auto bytes-per-second=1e3"
// RUN: not mpc-opt %s --mpc-amp="level=auto bytes-per-second=-1" 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not mpc-opt %s --mpc-amp="level=auto low-flops=nan" 2>&1 | FileCheck %s --check-prefix=NAN
// RUN: not mpc-opt %s --mpc-amp="level=auto seconds-per-operation=inf" 2>&1 | FileCheck %s --check-prefix=INF

// O1: error: keep-batchnorm-fp32 is for O2 and O3: O1 already runs norms in f32
// AUTO: error: keep-batchnorm-fp32 is for O2 and O3: auto already runs norms in f32
// ZERO: error: unknown level '02'; valid levels are O0, O1, O2, O3 and auto (the letter O, not the digit zero)
// O4: error: unknown level 'o4'; valid levels are O0, O1, O2, O3 and auto{{$}}
// DTYPE: error: unknown low type 'fp16'; choose f16, bf16 or auto{{$}}
// KEEP: error: unknown keep-batchnorm-fp32 'maybe'; choose true or false, or leave it out
// NEGATIVE: error: bytes-per-second must be finite and positive, or 0 for the default, got -1
// NAN: error: low-flops must be finite and positive, or 0 for the default, got nan
// INF: error: seconds-per-operation must be finite and positive, or 0 for the default, got inf
// COST: error: the minimum cut over 2 operations takes costs below 2^61 fs together; by bytes-per-second = 1.000000e-09, low-flops = {{.*}}, f32-flops = {{.*}} and seconds-per-operation = {{.*}} they add up to more: give higher rates, or choose another level than auto
#net = #mpc.scope<"net", network>
func.func @f(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %y = mpc.matmul %x, %x in #net : tensor<64x64xf32>
  %z = mpc.relu %y in #net : tensor<64x64xf32>
  return %z : tensor<64x64xf32>
}

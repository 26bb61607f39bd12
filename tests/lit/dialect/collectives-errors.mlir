// RUN: mpc-opt %s --verify-diagnostics --split-input-file

func.func @all_reduce(%0: tensor<4xf16>) {
  // expected-error @+1 {{'mpc.all_reduce' op is for 3 processes; their number is a power of two}}
  %r0 = mpc.all_reduce %0 {processes = 3} : tensor<4xf16>
  return
}

// -----

func.func @all_reduce_max(%0: tensor<4xi32>) {
  // expected-error @+1 {{'mpc.all_reduce_max' op is for 0 processes; their number is a power of two}}
  %r0 = mpc.all_reduce_max %0 {processes = 0} : tensor<4xi32>
  return
}

// -----

func.func @all_gather(%0: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.all_gather' op is for 6 processes; their number is a power of two}}
  %r0 = mpc.all_gather %0 {processes = 6} : (tensor<4xf32>) -> tensor<6x4xf32>
  return
}

// -----

func.func @all_gather(%0: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.all_gather' op result 0 is 'tensor<4xf32>', its shape must be 2x4}}
  %r0 = mpc.all_gather %0 {processes = 2} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @all_gather(%0: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.all_gather' op gives 'tensor<2x4xf16>' of 'tensor<4xf32>'; elements keep their type}}
  %r0 = mpc.all_gather %0 {processes = 2} : (tensor<4xf32>) -> tensor<2x4xf16>
  return
}

// -----

func.func @process_rank() {
  // expected-error @+1 {{'mpc.process_rank' op is for 5 processes; their number is a power of two}}
  %r0 = mpc.process_rank {processes = 5} : () -> tensor<i32>
  return
}

// -----

func.func @all_reduce(%0: tensor<4xf16>) {
  // expected-error @+1 {{'mpc.all_reduce' op gives 'tensor<4xf32>' of 'tensor<4xf16>'; the sum keeps the type}}
  %r0 = mpc.all_reduce %0 : (tensor<4xf16>) -> tensor<4xf32>
  return
}

// -----

func.func @all_reduce(%0: tensor<4xf16>) {
  // expected-error @+1 {{'mpc.all_reduce' op result 0 is 'tensor<2xf16>', its shape must be 4}}
  %r0 = mpc.all_reduce %0 : (tensor<4xf16>) -> tensor<2xf16>
  return
}

// -----

func.func @all_reduce_start(%0: tensor<4xf16>) -> tensor<4xf16> {
  // expected-error @+1 {{'mpc.all_reduce_start' op sums over 2 processes; a Program runs in one}}
  %started = mpc.all_reduce_start %0 {processes = 2} : tensor<4xf16>
  %r0 = mpc.all_reduce_wait %started : tensor<4xf16>
  return %r0 : tensor<4xf16>
}

// -----

func.func @all_reduce_start(%0: tensor<4xf16>) {
  // expected-error @+1 {{'mpc.all_reduce_start' op has 0 readers; one mpc.all_reduce_wait must read what it starts}}
  %started = mpc.all_reduce_start %0 : tensor<4xf16>
  return
}

// -----

func.func @all_reduce_start(%0: tensor<4xf16>) -> (tensor<4xf16>, tensor<4xf16>) {
  // expected-error @+1 {{'mpc.all_reduce_start' op has 2 readers; one mpc.all_reduce_wait must read what it starts}}
  %started = mpc.all_reduce_start %0 : tensor<4xf16>
  %r0 = mpc.all_reduce_wait %started : tensor<4xf16>
  %r1 = mpc.all_reduce_wait %started : tensor<4xf16>
  return %r0, %r1 : tensor<4xf16>, tensor<4xf16>
}

// -----

func.func @all_reduce_start(%0: tensor<4xf16>) -> tensor<4xf16> {
  // expected-error @+1 {{'mpc.all_reduce_start' op has no mpc.all_reduce_wait in its block}}
  %started = mpc.all_reduce_start %0 : tensor<4xf16>
  // expected-note @+1 {{'mpc.relu' reads what it starts}}
  %r0 = mpc.relu %started : tensor<4xf16>
  return %r0 : tensor<4xf16>
}

// -----

func.func @all_reduce_wait(%0: tensor<4xf16>) -> tensor<4xf16> {
  // expected-error @+1 {{'mpc.all_reduce_wait' op waits for what no mpc.all_reduce_start has begun}}
  %r0 = mpc.all_reduce_wait %0 : tensor<4xf16>
  return %r0 : tensor<4xf16>
}

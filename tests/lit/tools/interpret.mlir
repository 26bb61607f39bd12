// RUN: mpc-opt %s --mpc-interpret --split-input-file --allow-unregistered-dialect --verify-diagnostics | FileCheck %s
// RUN: mpc-opt %s --mpc-interpret --mpc-interpret --split-input-file --allow-unregistered-dialect --verify-diagnostics | FileCheck %s

// A function without arguments returns what it computes, as constants. Each type rounds as it is stored.
// CHECK-LABEL: func @values() -> (tensor<2xf32>, tensor<2xf16>, tensor<2xi8>, tensor<2xi1>)
// CHECK-NEXT: %[[A:.*]] = mpc.constant {{.*}}dense<[0.000000e+00, 2.750000e+00]> : tensor<2xf32>
// CHECK-NEXT: %[[B:.*]] = mpc.constant {{.*}}dense<[-3.000000e+02, 2.750000e+00]> : tensor<2xf16>
// CHECK-NEXT: %[[C:.*]] = mpc.constant {{.*}}dense<[-128, 2]> : tensor<2xi8>
// CHECK-NEXT: %[[D:.*]] = mpc.constant {{.*}}dense<[false, true]> : tensor<2xi1>
// CHECK-NEXT: return %[[A]], %[[B]], %[[C]], %[[D]]
func.func @values() -> (tensor<2xf32>, tensor<2xf16>, tensor<2xi8>, tensor<2xi1>) {
  %x = mpc.constant {value = dense<[-300.03, 2.75]> : tensor<2xf32>} : () -> tensor<2xf32>
  %a = mpc.relu %x : tensor<2xf32>
  %b = mpc.cast %x : (tensor<2xf32>) -> tensor<2xf16>
  %c = mpc.cast %x : (tensor<2xf32>) -> tensor<2xi8>
  %d = mpc.equal %a, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  return %a, %b, %c, %d : tensor<2xf32>, tensor<2xf16>, tensor<2xi8>, tensor<2xi1>
}

// Calls run what they call. A function with arguments stays as it is.
// CHECK-LABEL: func private @halve(
// CHECK: mpc.mul_scalar
// CHECK-LABEL: func @call() -> tensor<f32>
// CHECK-NEXT: mpc.constant {{.*}}dense<4.000000e+00>
// CHECK-NEXT: return
func.func private @halve(%x: tensor<f32>) -> tensor<f32> {
  %y = mpc.mul_scalar %x {value = 0.5} : tensor<f32>
  return %y : tensor<f32>
}
func.func @call() -> tensor<f32> {
  %x = mpc.constant {value = dense<8.0> : tensor<f32>} : () -> tensor<f32>
  %y = func.call @halve(%x) : (tensor<f32>) -> tensor<f32>
  return %y : tensor<f32>
}
// CHECK-LABEL: func private @outside()
func.func private @outside() -> tensor<f32>

// -----

// expected-error @+1 {{@again calls itself: it cannot be run}}
func.func @again() -> tensor<f32> {
  %x = func.call @again() : () -> tensor<f32>
  return %x : tensor<f32>
}

// -----

// expected-error @+1 {{'mpc.backward' of @gradient: run mpc-autodiff first}}
func.func @gradient() -> tensor<f32> {
  %x = mpc.constant {value = dense<8.0> : tensor<f32>} : () -> tensor<f32>
  %y = mpc.square %x : tensor<f32>
  %dx = mpc.backward %y wrt(%x) seed(%x) : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  return %dx : tensor<f32>
}

// -----

// expected-error @+1 {{'other.operation' of @unknown cannot be run by the interpreter}}
func.func @unknown() -> tensor<f32> {
  %x = "other.operation"() : () -> tensor<f32>
  return %x : tensor<f32>
}

// -----

// expected-error-re @+1 {{'mpc.constant' of @large has a result of more than {{[0-9]+}} elements: as f64 they would take more than a quarter of this machine's memory of {{[0-9]+}} bytes, and the interpreter makes none so large}}
func.func @large() -> tensor<70368744177664xf32> {
  %x = mpc.constant {value = dense<1.0> : tensor<70368744177664xf32>} : () -> tensor<70368744177664xf32>
  return %x : tensor<70368744177664xf32>
}

// -----

// Integers of 53 bits are exact.
// CHECK-LABEL: func @exact_integers()
// CHECK-NEXT: mpc.constant {{.*}}dense<[-9007199254740991, 9007199254740991]> : tensor<2xi64>
func.func @exact_integers() -> tensor<2xi64> {
  %x = mpc.constant {value = dense<[-9007199254740990, 9007199254740990]> : tensor<2xi64>} : () -> tensor<2xi64>
  %y = mpc.constant {value = dense<[-1, 1]> : tensor<2xi64>} : () -> tensor<2xi64>
  %z = mpc.int_add %x, %y : tensor<2xi64>
  return %z : tensor<2xi64>
}

// -----

// The draws of this key would be those of another one.
// expected-error @+1 {{'mpc.constant' of @key holds -7046029254386353131: the interpreter holds i64 in f64, which is exact from -9007199254740991 to 9007199254740991}}
func.func @key() -> tensor<4xf32> {
  %key = mpc.constant {value = dense<-7046029254386353131> : tensor<i64>} : () -> tensor<i64>
  %x = mpc.random %key {distribution = uniform, a = 0.0, b = 1.0, shape = [4]} : (tensor<i64>) -> tensor<4xf32>
  return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{'mpc.int_add' of @sum gives about 9007199254740992 in element 1 of result 0: the interpreter holds i64 in f64, which is exact from -9007199254740991 to 9007199254740991}}
func.func @sum() -> tensor<2xi64> {
  %x = mpc.constant {value = dense<[1, 9007199254740991]> : tensor<2xi64>} : () -> tensor<2xi64>
  %y = mpc.constant {value = dense<[1, 2]> : tensor<2xi64>} : () -> tensor<2xi64>
  %z = mpc.int_add %x, %y : tensor<2xi64>
  return %z : tensor<2xi64>
}

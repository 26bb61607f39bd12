// RUN: mpc-opt %s --verify-diagnostics --split-input-file

// expected-error @+2 {{the role 'paramter' is unknown; data is input, capture, output, record, state is parameter, statistic, slot, step, learning_rate, rng, scaler, derived, accumulator}}
// expected-error @+1 {{failed to parse Mpc_StateAttr parameter 'role'}}
func.func @role(%x: tensor<f32> {mpc.state = #mpc.state<input, "x">}, %w: tensor<f32> {mpc.state = #mpc.state<paramter, "w">}) {
  return
}

// -----

// expected-error @+2 {{the role 'loss' is unknown; data is input, capture, output, record, state is}}
// expected-error @+1 {{failed to parse Mpc_StateAttr parameter 'role'}}
func.func @role_of_result(%x: tensor<f32>) -> (tensor<f32> {mpc.state = #mpc.state<loss, "y">}) {
  return %x : tensor<f32>
}

// -----

// expected-error @+1 {{'func.func' op argument 0 has mpc.state = 1 : i64; it must be a #mpc.state}}
func.func @no_state(%x: tensor<f32> {mpc.state = 1}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op argument 0 has the attribute 'mpc.name'; what it is stands in 'mpc.state'}}
func.func @other_attribute(%x: tensor<f32> {mpc.name = "x"}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op result 0 has the attribute 'mpc.role'; what it is stands in 'mpc.state'}}
func.func @other_attribute_of_result(%x: tensor<f32>) -> (tensor<f32> {mpc.role = "output"}) {
  return %x : tensor<f32>
}

// -----

// expected-error @+1 {{state of the role 'slot' has no name}}
func.func @no_name(%v: tensor<f32> {mpc.state = #mpc.state<slot, "">}) attributes {mpc.step} {
  return
}

// -----

// expected-error @+1 {{'s' is of 'w' and has the role 'statistic'; a slot, a derived value or an accumulator belongs to other state}}
func.func @no_owner(%s: tensor<f32> {mpc.state = #mpc.state<statistic, "s", of = "w">}) attributes {mpc.step} {
  return
}

// -----

// expected-error @+1 {{'v' belongs to itself}}
func.func @own_owner(%v: tensor<f32> {mpc.state = #mpc.state<slot, "v", of = "v">}) attributes {mpc.step} {
  return
}

// -----

// expected-error @+1 {{'func.func' op argument 0, the slot 'v', is of 'w', which no state argument is}}
func.func @unknown_owner(%v: tensor<f32> {mpc.state = #mpc.state<slot, "v", of = "w">},
                         %w: tensor<f32> {mpc.state = #mpc.state<input, "w">}) attributes {mpc.step} {
  return
}

// -----

// expected-error @+1 {{'func.func' op argument 0, the derived 'w.f16', is of '', which no state argument is}}
func.func @derived_of_nothing(%v: tensor<f16> {mpc.state = #mpc.state<derived, "w.f16">}) attributes {mpc.step} {
  return
}

// -----

// expected-error @+1 {{'func.func' op argument 1, the derived 'w.f16', is 'tensor<5xf16>' and 'w', which it is of, is 'tensor<4xf32>'; derived state is a cast of what it is of}}
func.func @derived_of_another_shape(%w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
                                    %s: tensor<5xf16> {mpc.state = #mpc.state<derived, "w.f16", of = "w">}) attributes {mpc.step} {
  return
}

// -----

// expected-error @+1 {{'func.func' op argument 1, the derived 'a', is of 'b', which is derived itself}}
func.func @derived_of_derived(%w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
                              %a: tensor<4xf16> {mpc.state = #mpc.state<derived, "a", of = "b">},
                              %b: tensor<4xbf16> {mpc.state = #mpc.state<derived, "b", of = "w">}) attributes {mpc.step} {
  return
}

// -----

// expected-error @+1 {{'func.func' op argument 1, the derived 'w.i32', is 'tensor<4xi32>' and 'w', which it is of, is 'tensor<4xf32>'; derived state is a cast of what it is of}}
func.func @derived_integers(%w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
                            %s: tensor<4xi32> {mpc.state = #mpc.state<derived, "w.i32", of = "w">}) attributes {mpc.step} {
  return
}

// -----

// expected-error @+1 {{'w' has the role 'parameter' and form = 'f32'; a parameter may be stored in f16 or bf16}}
func.func @form(%w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w", form = f32>}) attributes {mpc.step} {
  return
}

// -----

// expected-error @+1 {{'v' has the role 'slot' and form = 'f16'; a parameter may be stored in f16 or bf16}}
func.func @form_of_slot(%v: tensor<4xf32> {mpc.state = #mpc.state<slot, "v", form = f16>}) attributes {mpc.step} {
  return
}

// -----

// expected-error @+1 {{'func.func' op argument 0 is the parameter 'w' of type 'tensor<4xi32>' with form = 'f16'; an f32 parameter may be stored in f16 or bf16}}
func.func @form_of_integers(%w: tensor<4xi32> {mpc.state = #mpc.state<parameter, "w", form = f16>}) attributes {mpc.step} {
  return
}

// -----

// expected-error @+1 {{'func.func' op result 0 is #mpc.state<parameter, "w", form = f16>; what state is of, and its form, stand on the argument}}
func.func @form_of_result(%w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">})
    -> (tensor<4xf32> {mpc.state = #mpc.state<parameter, "w", form = f16>}) attributes {mpc.step} {
  return %w : tensor<4xf32>
}

// -----

// expected-error @+1 {{'func.func' op result 0 is #mpc.state<slot, "v", of = "w">; what state is of, and its form, stand on the argument}}
func.func @owner_of_result(%v: tensor<4xf32> {mpc.state = #mpc.state<slot, "v">})
    -> (tensor<4xf32> {mpc.state = #mpc.state<slot, "v", of = "w">}) attributes {mpc.step} {
  return %v : tensor<4xf32>
}

// -----

// expected-error @+1 {{'func.func' op arguments 0 and 2 are both the state 'w'}}
func.func @one_argument_twice(%w: tensor<f32> {mpc.state = #mpc.state<parameter, "w">},
                              %x: tensor<f32> {mpc.state = #mpc.state<input, "w">},
                              %v: tensor<f32> {mpc.state = #mpc.state<slot, "w">}) attributes {mpc.step} {
  return
}

// -----

// expected-error @+1 {{'func.func' op result 1 is the new value of the parameter 'v', which no argument is}}
func.func @result_of_nothing(%w: tensor<f32> {mpc.state = #mpc.state<parameter, "w">})
    -> (tensor<f32>, tensor<f32> {mpc.state = #mpc.state<parameter, "v">}) attributes {mpc.step} {
  return %w, %w : tensor<f32>, tensor<f32>
}

// -----

// expected-error @+1 {{'func.func' op result 0 is the new value of the slot 'w', which no argument is}}
func.func @result_of_another_role(%w: tensor<f32> {mpc.state = #mpc.state<parameter, "w">})
    -> (tensor<f32> {mpc.state = #mpc.state<slot, "w">}) attributes {mpc.step} {
  return %w : tensor<f32>
}

// -----

// expected-error @+1 {{'func.func' op result 0 is the new value of the parameter 'w', which no argument is}}
func.func @result_of_data(%w: tensor<f32> {mpc.state = #mpc.state<input, "w">})
    -> (tensor<f32> {mpc.state = #mpc.state<parameter, "w">}) attributes {mpc.step} {
  return %w : tensor<f32>
}

// -----

// expected-error @+1 {{'func.func' op result 0 is the new value of 'w' and is 'tensor<f16>'; argument 0, the old value, is 'tensor<f32>'}}
func.func @result_of_another_type(%w: tensor<f32> {mpc.state = #mpc.state<parameter, "w">}, %l: tensor<f16>)
    -> (tensor<f16> {mpc.state = #mpc.state<parameter, "w">}) attributes {mpc.step} {
  return %l : tensor<f16>
}

// -----

// expected-error @+1 {{'func.func' op results 0 and 2 are both the new value of the state 'w'}}
func.func @one_state_twice(%w: tensor<f32> {mpc.state = #mpc.state<parameter, "w">}, %x: tensor<f32>)
    -> (tensor<f32> {mpc.state = #mpc.state<parameter, "w">}, tensor<f32> {mpc.state = #mpc.state<output, "w">},
        tensor<f32> {mpc.state = #mpc.state<parameter, "w">}) attributes {mpc.step} {
  return %w, %w, %x : tensor<f32>, tensor<f32>, tensor<f32>
}

// -----

// expected-error @+1 {{'func.func' op argument 0 has the role 'parameter' and the type 'f32'; data and state are tensors of a static shape}}
func.func @no_tensor(%w: f32 {mpc.state = #mpc.state<parameter, "w", form = f16>}) attributes {mpc.step} {
  return
}

// -----

// expected-error @+1 {{'func.func' op result 0 has the role 'output' and the type 'tensor<?xf32>'; data and state are tensors of a static shape}}
func.func @no_shape(%x: tensor<?xf32>) -> (tensor<?xf32> {mpc.state = #mpc.state<output, "y">}) {
  return %x : tensor<?xf32>
}

// -----

// expected-error @+1 {{'func.func' op argument 0 is the slot 'v' of a function without 'mpc.step'; state stands in steps}}
func.func @no_step(%v: tensor<f32> {mpc.state = #mpc.state<slot, "v">}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op result 0 is the parameter 'w' of a function without 'mpc.step'; state stands in steps}}
func.func @no_step_of_result(%w: tensor<f32>) -> (tensor<f32> {mpc.state = #mpc.state<parameter, "w">}) {
  return %w : tensor<f32>
}

// -----

// A signature that does not fit its function's type gets the message of the function.
// expected-error @+1 {{expects argument attribute array to have the same number of elements as the number of function arguments, got 1, but expected 2}}
"func.func"() <{arg_attrs = [{mpc.state = #mpc.state<parameter, "w">}], function_type = (tensor<f32>, tensor<f32>) -> (), sym_name = "few_arguments"}> ({
^bb0(%a: tensor<f32>, %b: tensor<f32>):
  "func.return"() : () -> ()
}) {mpc.step} : () -> ()

// -----

// expected-error @+1 {{expects result attribute array to have the same number of elements as the number of function results, got 2, but expected 1}}
"func.func"() <{res_attrs = [{}, {mpc.state = #mpc.state<parameter, "w">}], function_type = (tensor<f32>) -> tensor<f32>, sym_name = "many_results"}> ({
^bb0(%a: tensor<f32>):
  "func.return"(%a) : (tensor<f32>) -> ()
}) {mpc.step} : () -> ()

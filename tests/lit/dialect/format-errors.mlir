// RUN: mpc-opt %s --verify-diagnostics --split-input-file

func.func @unknown_word(%x: tensor<1x4x4x3xf32>, %w: tensor<2x3x1x1xf32>) {
  // expected-error @+1 {{'mpc.conv2d' 'data_format' is one of NCHW, NHWC; got 'NHCW'}}
  %0 = mpc.conv2d %x, %w {data_format = NHCW} : (tensor<1x4x4x3xf32>, tensor<2x3x1x1xf32>) -> tensor<1x4x4x2xf32>
  return
}

// -----

func.func @unknown_word_with_quotes(%x: tensor<1x4x4x3xf32>, %w: tensor<2x3x1x1xf32>) {
  // expected-error @+1 {{'mpc.conv2d' 'pad_mode' is one of valid, same, pad; got 'Same'}}
  %0 = mpc.conv2d %x, %w {pad_mode = "Same"} : (tensor<1x4x4x3xf32>, tensor<2x3x1x1xf32>) -> tensor<1x4x4x2xf32>
  return
}

// -----

func.func @unknown_word_of_attribute(%x: tensor<1x4x4x3xf32>, %w: tensor<2x3x1x1xf32>) {
  // expected-error @+2 {{expected one of NCHW, NHWC; got 'NHCW'}}
  // expected-error @+1 {{failed to parse Mpc_DataFormatAttr parameter 'value'}}
  %0 = mpc.conv2d %x, %w {data_format = #mpc.data_format<NHCW>} : (tensor<1x4x4x3xf32>, tensor<2x3x1x1xf32>) -> tensor<1x4x4x2xf32>
  return
}

// -----

func.func @word_of_another_attribute(%x: tensor<1x4x4x3xf32>, %w: tensor<2x3x1x1xf32>) {
  // expected-error @+1 {{custom op 'mpc.conv2d' attribute 'data_format' failed to satisfy constraint: one of NCHW, NHWC}}
  %0 = mpc.conv2d %x, %w {data_format = #mpc.pad_mode<same>} : (tensor<1x4x4x3xf32>, tensor<2x3x1x1xf32>) -> tensor<1x4x4x2xf32>
  return
}

// -----

func.func @no_word(%x: tensor<1x4x4x3xf32>, %w: tensor<2x3x1x1xf32>) {
  // expected-error @+1 {{custom op 'mpc.conv2d' attribute 'data_format' failed to satisfy constraint: one of NCHW, NHWC}}
  %0 = mpc.conv2d %x, %w {data_format = 1} : (tensor<1x4x4x3xf32>, tensor<2x3x1x1xf32>) -> tensor<1x4x4x2xf32>
  return
}

// -----

func.func @word_without_value(%x: tensor<1x4x4x3xf32>, %w: tensor<2x3x1x1xf32>) {
  // expected-error @+1 {{custom op 'mpc.conv2d' attribute 'data_format' failed to satisfy constraint: one of NCHW, NHWC}}
  %0 = mpc.conv2d %x, %w {data_format} : (tensor<1x4x4x3xf32>, tensor<2x3x1x1xf32>) -> tensor<1x4x4x2xf32>
  return
}

// -----

func.func @word_for_no_words(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected attribute value}}
  %0 = mpc.mul_scalar %x {value = half} : tensor<4xf32>
  return
}

// -----

func.func @wrong_kind(%x: tensor<1x4x4x3xf32>, %w: tensor<2x3x1x1xf32>) {
  // expected-error @+1 {{custom op 'mpc.conv2d' attribute 'strides' failed to satisfy constraint: i64 dense array attribute}}
  %0 = mpc.conv2d %x, %w {strides = "x"} : (tensor<1x4x4x3xf32>, tensor<2x3x1x1xf32>) -> tensor<1x4x4x2xf32>
  return
}

// -----

func.func @array_without_value(%x: tensor<1x4x4x3xf32>, %w: tensor<2x3x1x1xf32>) {
  // expected-error @+1 {{custom op 'mpc.conv2d' attribute 'strides' failed to satisfy constraint: i64 dense array attribute}}
  %0 = mpc.conv2d %x, %w {strides} : (tensor<1x4x4x3xf32>, tensor<2x3x1x1xf32>) -> tensor<1x4x4x2xf32>
  return
}

// -----

func.func @number_for_array(%x: tensor<1x4x4x3xf32>, %w: tensor<2x3x1x1xf32>) {
  // expected-error @+1 {{custom op 'mpc.conv2d' attribute 'strides' failed to satisfy constraint: i64 dense array attribute}}
  %0 = mpc.conv2d %x, %w {strides = 2} : (tensor<1x4x4x3xf32>, tensor<2x3x1x1xf32>) -> tensor<1x4x4x2xf32>
  return
}

// -----

func.func @array_of_reals(%x: tensor<1x4x4x3xf32>, %w: tensor<2x3x1x1xf32>) {
  // expected-error @+1 {{expected integer value}}
  %0 = mpc.conv2d %x, %w {strides = [1.5, 1.5]} : (tensor<1x4x4x3xf32>, tensor<2x3x1x1xf32>) -> tensor<1x4x4x2xf32>
  return
}

// -----

func.func @array_not_closed(%x: tensor<1x4x4x3xf32>, %w: tensor<2x3x1x1xf32>) {
  // expected-error @+1 {{expected ']'}}
  %0 = mpc.conv2d %x, %w {strides = [2, 2} : (tensor<1x4x4x3xf32>, tensor<2x3x1x1xf32>) -> tensor<1x4x4x2xf32>
  return
}

// -----

func.func @array_of_too_large_numbers(%x: tensor<1x4x4x3xf32>, %w: tensor<2x3x1x1xf32>) {
  // expected-error @+1 {{integer value too large}}
  %0 = mpc.conv2d %x, %w {strides = [9223372036854775808, 1]} : (tensor<1x4x4x3xf32>, tensor<2x3x1x1xf32>) -> tensor<1x4x4x2xf32>
  return
}

// -----

func.func @real_for_integer(%x: tensor<1x4x4x3xf32>, %w: tensor<2x3x1x1xf32>) {
  // expected-error @+1 {{custom op 'mpc.conv2d' attribute 'groups' failed to satisfy constraint: 64-bit signless integer attribute}}
  %0 = mpc.conv2d %x, %w {groups = 1.0} : (tensor<1x4x4x3xf32>, tensor<2x3x1x1xf32>) -> tensor<1x4x4x2xf32>
  return
}

// -----

func.func @integer_of_32_bits(%x: tensor<1x4x4x3xf32>, %w: tensor<2x3x1x1xf32>) {
  // expected-error @+1 {{custom op 'mpc.conv2d' attribute 'groups' failed to satisfy constraint: 64-bit signless integer attribute}}
  %0 = mpc.conv2d %x, %w {groups = 1 : i32} : (tensor<1x4x4x3xf32>, tensor<2x3x1x1xf32>) -> tensor<1x4x4x2xf32>
  return
}

// -----

func.func @integer_for_real(%x: tensor<4xf32>) {
  // expected-error @+1 {{custom op 'mpc.mul_scalar' attribute 'value' failed to satisfy constraint: 32-bit float attribute}}
  %0 = mpc.mul_scalar %x {value = 1} : tensor<4xf32>
  return
}

// -----

// The bits of a number are an integer where no type follows.
func.func @bits_without_type(%x: tensor<4xf32>) {
  // expected-error @+1 {{custom op 'mpc.mul_scalar' attribute 'value' failed to satisfy constraint: 32-bit float attribute}}
  %0 = mpc.mul_scalar %x {value = 0x7FC00000} : tensor<4xf32>
  return
}

// -----

func.func @real_of_16_bits(%x: tensor<4xf32>) {
  // expected-error @+1 {{custom op 'mpc.mul_scalar' attribute 'value' failed to satisfy constraint: 32-bit float attribute}}
  %0 = mpc.mul_scalar %x {value = 1.0 : f16} : tensor<4xf32>
  return
}

// -----

func.func @attribute_twice(%x: tensor<1x4x4x3xf32>, %w: tensor<2x3x1x1xf32>) {
  // expected-error @+1 {{'mpc.conv2d' attribute 'groups' occurs more than once}}
  %0 = mpc.conv2d %x, %w {groups = 1, strides = [1, 1], groups = 1} : (tensor<1x4x4x3xf32>, tensor<2x3x1x1xf32>) -> tensor<1x4x4x2xf32>
  return
}

// -----

func.func @scope_twice(%x: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.relu' attribute 'mpc.scope' occurs more than once}}
  %0 = mpc.relu %x {mpc.scope = #mpc.scope<"net">} in "net" : tensor<4xf32>
  return
}

// -----

func.func @precision_twice(%x: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.relu' attribute 'mpc.precision' occurs more than once}}
  %0 = mpc.relu %x {mpc.precision = #mpc.precision<f32, cut>} as <f32, cut> : tensor<4xf32>
  return
}

// -----

func.func @backward_twice(%x: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.relu' attribute 'mpc.backward' occurs more than once}}
  %0 = mpc.relu %x {mpc.backward, mpc.backward} : tensor<4xf32>
  return
}

// -----

func.func @backward_with_value(%x: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.relu' op attribute 'mpc.backward' must be a unit attribute, got 1 : i64}}
  %0 = mpc.relu %x {mpc.backward = 1} : tensor<4xf32>
  return
}

// -----

// The path alone is a scope behind `in`, not in the dictionary.
func.func @scope_of_wrong_kind(%x: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.relu' op attribute 'mpc.scope' must be a #mpc.scope, got "net"}}
  %0 = mpc.relu %x {mpc.scope = "net"} : tensor<4xf32>
  return
}

// -----

func.func @dictionary_not_closed(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected '}'}}
  %0 = mpc.relu %x {mark : tensor<4xf32>
  return
}

// -----

func.func @dictionary_without_name(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected valid keyword or string}}
  %0 = mpc.relu %x {= 1} : tensor<4xf32>
  return
}

// -----

func.func @keywords_in_another_order(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected ':'}}
  %0 = mpc.relu %x in "net" backward : tensor<4xf32>
  return
}

// -----

func.func @dictionary_behind_keywords(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected ':'}}
  %0 = mpc.relu %x backward {mark} : tensor<4xf32>
  return
}

// -----

func.func @scope_without_path(%x: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.relu' expected string}}
  %0 = mpc.relu %x in <network> : tensor<4xf32>
  return
}

// -----

func.func @scope_of_nothing(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected '<'}}
  %0 = mpc.relu %x in 1 : tensor<4xf32>
  return
}

// -----

func.func @member_of_scope(%x: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.relu' a scope has a path, network, pin, level and low; got 'pins'}}
  %0 = mpc.relu %x in <"net", pins = f16> : tensor<4xf32>
  return
}

// -----

func.func @pin_of_scope(%x: tensor<4xf32>) {
  // expected-error @+1 {{scope 'net' pins 'i32'; choose f32, f16 or bf16}}
  %0 = mpc.relu %x in <"net", pin = i32> : tensor<4xf32>
  return
}

// -----

func.func @scope_not_closed(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected '>'}}
  %0 = mpc.relu %x in <"net" : tensor<4xf32>
  return
}

// -----

func.func @alias_of_nothing(%x: tensor<4xf32>) {
  // expected-error @+1 {{undefined symbol alias id 'net'}}
  %0 = mpc.relu %x in #net : tensor<4xf32>
  return
}

// -----

func.func @rule(%x: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.relu' the rule 'guess' is unknown; there are user_cast, to_float, list_entry, loss, label, differentiated_by, differentiated_value, level, norm_kept_f32, class, stored_assignment, infer_rule, cut, low_pays, low_does_not_pay}}
  %0 = mpc.relu %x as <f32, guess> : tensor<4xf32>
  return
}

// -----

func.func @mark_of_precision(%x: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.relu' a precision may be marked user and folded, once each; got 'kept'}}
  %0 = mpc.relu %x as <f32, cut, kept> : tensor<4xf32>
  return
}

// -----

func.func @type_of_precision(%x: tensor<4xf32>) {
  // expected-error @+1 {{a precision is a floating type, got 'i32'}}
  %0 = mpc.relu %x as <i32, cut> : tensor<4xf32>
  return
}

// -----

func.func @precision_in_quotes(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected '<'}}
  %0 = mpc.relu %x as "f32" : tensor<4xf32>
  return
}

// -----

func.func @no_types(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected ':'}}
  %0 = mpc.relu %x
  return
}

// -----

func.func @no_colon(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected ':'}}
  %0 = mpc.relu %x tensor<4xf32>
  return
}

// -----

func.func @one_type_without_operands() {
  // expected-error @+1 {{'mpc.constant' one type stands for all operands and the result; without operands, write () -> 'tensor<4xf32>'}}
  %0 = mpc.constant {value = dense<1.0> : tensor<4xf32>} : tensor<4xf32>
  return
}

// -----

// expected-note @+1 {{prior use here}}
func.func @one_type_for_two(%x: tensor<4xf32>, %y: tensor<1xf32>) {
  // expected-error @+1 {{use of value '%y' expects different type than prior uses: 'tensor<4xf32>' vs 'tensor<1xf32>'}}
  %0 = mpc.add %x, %y : tensor<4xf32>
  return
}

// -----

func.func @one_type_for_two_results(%x: tensor<4xf32>) {
  // expected-error @+1 {{operation defines 1 results but was provided 2 to bind}}
  %0:2 = mpc.split %x {sizes = [2, 2]} : tensor<4xf32>
  return
}

// -----

func.func @too_few_types(%x: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.add' number of operands and types do not match: got 2 operands and 1 types}}
  %0 = mpc.add %x, %x : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @no_arrow(%x: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.relu' expected '->' and the types of the results; only an update of state, whose results have names, may leave them out}}
  %0 = mpc.relu %x : (tensor<4xf32>)
  return
}

// -----

// Without names nobody knows how many results an update has.
func.func @no_arrow_and_no_names(%p: tensor<4xf32>, %g: tensor<4xf16>, %rate: tensor<f32>, %step: tensor<i32>) {
  // expected-error @+1 {{'mpc.increment' expected '->' and the types of the results; only an update of state, whose results have names, may leave them out}}
  mpc.increment %step : (tensor<i32>)
  return
}

// -----

func.func @no_arrow_and_more_results_than_operands(%p: tensor<4xf32>, %g: tensor<4xf16>, %rate: tensor<f32>, %step: tensor<i32>) {
  // expected-error @+1 {{'mpc.increment' expected '->' and the types of the results; only an update of state, whose results have names, may leave them out}}
  %0:2 = mpc.increment %step : (tensor<i32>)
  return
}

// -----

// A shadow whose type is not that of the gradient needs the arrow.
func.func @arrow_missing_for_shadow(%p: tensor<4xf32>, %g: tensor<4xf16>, %rate: tensor<f32>, %step: tensor<i32>) {
  // expected-error @+1 {{'mpc.momentum' op shadow is 'tensor<4xf16>', expected 'tensor<4xbf16>'}}
  %0:3 = mpc.momentum %p, %p, %g, %rate {shadow = bf16} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>, tensor<f32>)
  return
}

// -----

func.func @guard_with_more_types(%x: tensor<4xf32>, %c: tensor<i1>) {
  // expected-error @+1 {{'mpc.guarded_update' number of operands and types do not match: got 1 operands and 2 types}}
  %0 = mpc.guarded_update %c else(%x) {
    mpc.yield %x : tensor<4xf32>
  } : tensor<4xf32>, tensor<4xf32>
  return
}

// -----

func.func @guard_without_types(%c: tensor<i1>) {
  mpc.guarded_update %c else() {
  // expected-error @+1 {{expected non-function type}}
  } :
  return
}

// -----

func.func @guard_without_arrow(%x: tensor<4xf32>, %c: tensor<i1>) {
  %0 = mpc.guarded_update %c else(%x) {
    mpc.yield %x : tensor<4xf32>
  // expected-error @+1 {{expected '->'}}
  } : (tensor<i1>, tensor<4xf32>)
  return
}

// -----

func.func @guard_with_scope_behind_keyword(%x: tensor<4xf32>, %c: tensor<i1>) {
  %0 = mpc.guarded_update %c else(%x) {
    mpc.yield %x : tensor<4xf32>
  // expected-error @+1 {{expected ':'}}
  } in "net" : tensor<4xf32>
  return
}

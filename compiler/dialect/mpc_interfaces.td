// Interfaces of mpc operations: shape inference, automatic mixed precision, differentiation, images, axes, matrix work,
// updates, fusion.
#ifndef MPC_INTERFACES_TD
#define MPC_INTERFACES_TD

include "mlir/IR/OpBase.td"

def Mpc_ShapeInferenceInterface : OpInterface<"ShapeInferenceOpInterface"> {
  let description = [{
    Result types from operand types and attributes, before the operation exists. The shapes are binding (the verifier
    compares them with the operation's own); the element types are those that tracing gives. Element types are explicit
    in the IR, so that a pass may let an operation read and write different ones.

    The error text is what a user reads, after the Cell path: say what was given and what is accepted.
  }];
  let cppNamespace = "::mpc";
  let methods = [
    StaticInterfaceMethod<[{
      Infers result types. `operands` lists the types of the operands that are present; `attributes` holds inherent
      attributes, of which default-valued ones may be missing.
    }], "::llvm::Expected<::llvm::SmallVector<::mlir::RankedTensorType>>", "inferTypes",
      (ins "::mlir::TypeRange":$operands, "::mlir::DictionaryAttr":$attributes)>
  ];
  let verify = [{ return ::mpc::verifyInferredShapes<ConcreteOp>($_op); }];
}

def Mpc_AmpInterface : OpInterface<"AmpOpInterface"> {
  let description = [{
    How automatic mixed precision treats an operation: its class, and the operands and results that stay f32 whatever
    the class says (norm parameters, statistics, losses). Integer operands are never touched.
  }];
  let cppNamespace = "::mpc";
  let methods = [
    InterfaceMethod<"The class of the operation.", "::mpc::AmpClass", "getAmpClass", (ins)>,
    InterfaceMethod<"Operand positions that stay f32.", "::llvm::ArrayRef<unsigned>", "getF32Operands", (ins)>,
    InterfaceMethod<"Result positions that stay f32.", "::llvm::ArrayRef<unsigned>", "getF32Results", (ins)>
  ];
}

def Mpc_DifferentiableInterface : OpInterface<"DifferentiableOpInterface"> {
  let description = [{
    The vector-Jacobian product of an operation, as graph operations.
  }];
  let cppNamespace = "::mpc";
  let methods = [
    InterfaceMethod<[{
      Builds the cotangents of the operands. `cotangents` has one value a result, null where it is zero; at least one
      is not null. `needed` has one flag an operand. Returns one value an operand, of that operand's type; null means
      zero, and is allowed where `needed` is false or where the derivative is zero everywhere (stop_gradient,
      indices). Emits an error on the operation and fails where a needed operand has no derivative rule.
    }], "::llvm::FailureOr<::llvm::SmallVector<::mlir::Value>>", "buildVjp",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$cotangents,
           "::llvm::ArrayRef<bool>":$needed)>
  ];
}

def Mpc_ImageInterface : OpInterface<"ImageOpInterface"> {
  let description = [{
    An operation with a `data_format`: which operands and results are laid out by it, where they have rank 4. A setter
    changes the attribute alone. The caller lays out the values.
  }];
  let cppNamespace = "::mpc";
  let methods = [
    InterfaceMethod<"Positions of the images among the operands.", "::llvm::ArrayRef<unsigned>", "getImageOperands", (ins)>,
    InterfaceMethod<"Positions of the images among the results.", "::llvm::ArrayRef<unsigned>", "getImageResults", (ins)>,
    InterfaceMethod<"The layout of the images.", "::mpc::DataFormat", "getDataFormat", (ins)>,
    InterfaceMethod<"Sets the layout of the images.", "void", "setDataFormat", (ins "::mpc::DataFormat":$format)>,
    InterfaceMethod<"The shape of an image that is no operand, in the layout; empty where every image is one.",
      "::llvm::ArrayRef<int64_t>", "getInputShape", (ins), "", "return {};">,
    InterfaceMethod<"Sets this shape, of an operation that has one.", "void", "setInputShape",
      (ins "::llvm::ArrayRef<int64_t>":$shape), "",
      [{ llvm_unreachable("an operation without input_shape takes none"); }]>
  ];
}

def Mpc_AxesInterface : OpInterface<"AxesOpInterface"> {
  let description = [{
    Moves elements along axes that its attributes name. On permuted operands it takes permuted axes.
  }];
  let cppNamespace = "::mpc";
  let methods = [
    InterfaceMethod<[{
      Rewrites the axes in the attributes for operands whose axis i is axis permutation[i] of the present ones, as
      `mpc.transpose` has it. All operands have the rank of the permutation.
    }], "void", "permuteAxes", (ins "::llvm::ArrayRef<int64_t>":$permutation)>
  ];
}

def Mpc_LinesInterface : OpInterface<"LinesOpInterface"> {
  let description = [{
    Softmax along an axis, or its gradient. Operands and the result have one shape, and each line along the axis is
    computed by itself. Generated code takes lines whose elements lie side by side.
  }];
  let cppNamespace = "::mpc";
  let methods = [
    InterfaceMethod<"The axis; a negative one counts from the end.", "int64_t", "getAxis", (ins)>,
    InterfaceMethod<"Sets the axis.", "void", "setAxis", (ins "int64_t":$axis)>
  ];
}

def Mpc_ReductionInterface : OpInterface<"ReductionOpInterface"> {
  let description = [{
    Sums and maxima over axes: one operand and one result.
  }];
  let cppNamespace = "::mpc";
  let methods = [
    InterfaceMethod<"The axes, distinct and not negative; none: all.", "::llvm::ArrayRef<int64_t>", "getAxes", (ins)>,
    InterfaceMethod<"Sets the axes.", "void", "setAxes", (ins "::llvm::ArrayRef<int64_t>":$axes)>,
    InterfaceMethod<"Whether they stay in the result, with the extent 1.", "bool", "getKeepDims", (ins)>
  ];
}

def Mpc_ActivationInterface : OpInterface<"ActivationOpInterface"> {
  let description = [{
    Multiplies two matrices or convolves, and can apply an activation to its only result.
  }];
  let cppNamespace = "::mpc";
  let methods = [
    InterfaceMethod<"What it applies.", "::mpc::Activation", "getActivation", (ins)>,
    InterfaceMethod<"Sets what it applies.", "void", "setActivation", (ins "::mpc::Activation":$activation)>
  ];
}

def Mpc_MatrixWorkInterface : OpInterface<"MatrixWorkOpInterface"> {
  let description = [{
    An operation whose time is that of matrix products. Tensor cores compute them where types are low. Other operations
    count as moving bytes.
  }];
  let cppNamespace = "::mpc";
  let methods = [
    InterfaceMethod<"Floating-point operations of its products, an addition and a multiplication counted as two.",
      "double", "countFlops", (ins)>
  ];
}

def Mpc_OptimizerInterface : OpInterface<"OptimizerOpInterface"> {
  let description = [{
    The update of one parameter (operand 0) by its gradient. Optional scalars follow the operands of the rule. Their
    order is the scale where `unscale` is set, the norm where `max_norm` is not 0, and the predicate. The rule sees the
    gradient times 1 / scale, then times min(1, max_norm / (norm + 1e-6)), each rounded to f32. These are the bits that
    `mpc.unscale` and `mpc.clip_by_norm` would give.
  }];
  let cppNamespace = "::mpc";
  let methods = [
    InterfaceMethod<"The gradient, of any floating type.", "::mlir::OpOperand &", "getGradientMutable", (ins)>,
    InterfaceMethod<"Scale, norm and predicate, as far as there are.", "::mlir::OperandRange", "getScalars", (ins)>,
    InterfaceMethod<"The same, to add to.", "::mlir::MutableOperandRange", "getScalarsMutable", (ins)>,
    InterfaceMethod<"Whether the first scalar is the scale of the gradient.", "bool", "getUnscale", (ins)>,
    InterfaceMethod<"Says it of the first scalar.", "void", "setUnscale", (ins "bool":$unscale)>,
    InterfaceMethod<"The largest norm of all gradients; 0: they are not clipped.", "::llvm::APFloat", "getMaxNorm", (ins)>,
    InterfaceMethod<"Sets the largest norm.", "void", "setMaxNorm", (ins "::llvm::APFloat":$norm)>,
    InterfaceMethod<"The type of the low copy that is the last result; none: there is none.", "::mpc::LowCopy",
      "getShadow", (ins)>,
    InterfaceMethod<"Sets this type.", "void", "setShadow", (ins "::mpc::LowCopy":$shadow)>
  ];
}

def Mpc_GradientReaderInterface : OpInterface<"GradientReaderOpInterface"> {
  let description = [{
    Reads gradients, or losses, of any floating type and computes with them as they are stored: it widens a low one
    exactly. So no cast need stand in front of it. Without a method of its own the operand `gradient` is the one.
  }];
  let cppNamespace = "::mpc";
  let methods = [
    InterfaceMethod<"These operands, which stand together.", "::mlir::OperandRange", "getGradientOperands", (ins), "",
                    "return ::mlir::OperandRange(&$_op.getGradientMutable(), 1);">
  ];
}

def Mpc_FusibleInterface : OpInterface<"FusibleOpInterface"> {
  let description = [{
    How an operation is computed element by element, for the code generator. `ElementContext` (see
    `compiler/element/element_context.h`) gives the operands' elements, widened to f32, and takes the results', which the
    generator rounds to their storage types. The same code emits one element or a vector of them.

    An operation may reduce rows or columns first, in steps: the terms of step k may use what the steps before it kept.
    Element-wise operations have no steps.
  }];
  let cppNamespace = "::mpc";
  let methods = [
    InterfaceMethod<[{
      The operation's iteration space and how its operands and results lie over it. The error says why the operation, with
      these shapes and attributes, cannot be in a region. By default: element-wise, operands broadcast to the first
      result.
    }], "::llvm::Expected<::mpc::codegen::OperationSpace>", "getSpace", (ins), "",
      "return ::mpc::codegen::elementwiseSpace($_op);">,
    InterfaceMethod<"The reductions that come before the elements, in order.",
      "::llvm::SmallVector<::mpc::codegen::Reduction>", "getReductions", (ins), "", "return {};">,
    InterfaceMethod<"Emits what one element adds to the accumulators of reduction `step`: `context.addTerm` for each.",
      "void", "emitTerms", (ins "unsigned":$step, "::mpc::codegen::ElementContext &":$context), "",
      [{ llvm_unreachable("an operation with reductions has terms"); }]>,
    InterfaceMethod<[{
      Emits what follows from the accumulators of reduction `step`, once a row (or column): `context.keep` for what later
      steps and elements use, `context.setResult` for results with one value a row (or column).
    }], "void", "emitFinish", (ins "unsigned":$step, "::mpc::codegen::ElementContext &":$context), "",
      [{ llvm_unreachable("an operation with reductions finishes them"); }]>,
    InterfaceMethod<"Emits the results that have a value for each element.", "void", "emitElement",
      (ins "::mpc::codegen::ElementContext &":$context)>
  ];
}

#endif

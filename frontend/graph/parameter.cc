#include "frontend/graph/parameter.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "compiler/driver/compiler.h"
#include "frontend/graph/context.h"
#include "frontend/graph/element_conversion.h"
#include "frontend/graph/trace.h"
#include "runtime/executable.h"

namespace mpc {

struct Parameter::Data {
  std::shared_ptr<runtime::StateEntry> entry;
  Parameter owner;
  DType traced_dtype = DType::kF32;
  Initializer initializer = Zeros();
  absl::Status initial_error;  ///< the error of the tensor that it was made from
  bool requires_grad = true;
  bool made_trainable = true;
  std::uint64_t seed = 0;
  std::int64_t stream = 0;
  bool is_drawn = false;
};

namespace {

/// Writes f32 values to a low entry.
absl::Status WriteRounded(runtime::StateEntry& entry, const void* values) {
  std::vector<std::uint8_t> rounded(entry.spec().bytes());
  internal::ConvertElements(DType::kF32, values, entry.spec().dtype, rounded.data(),
                            static_cast<std::size_t>(entry.spec().num_elements()));
  return entry.Write(rounded);
}

}  // namespace

Parameter::Parameter(Shape shape, Initializer initializer, ParameterOptions options) : data_(std::make_shared<Data>()) {
  data_->entry = std::make_shared<runtime::StateEntry>("", options.role, TensorSpec{DType::kF32, std::move(shape)});
  data_->initializer = std::move(initializer);
  data_->requires_grad = data_->made_trainable = options.requires_grad;
  data_->seed = GetSeed();
  data_->stream = internal::NextStream();
  data_->is_drawn = true;
}

Parameter::Parameter(const Tensor& data, ParameterOptions options) : data_(std::make_shared<Data>()) {
  data_->entry = std::make_shared<runtime::StateEntry>("", options.role, data.spec());
  data_->traced_dtype = data.dtype();
  data_->requires_grad = data_->made_trainable = options.requires_grad;
  if (!data.status().ok()) {
    data_->initial_error = data.status();
  } else if (data.concrete()) {
    data_->initial_error = data_->entry->Write(data.bytes());
  } else if (data.defined()) {
    data_->initial_error = absl::UnimplementedError(absl::StrCat(
        "a Parameter was made from a tensor of the step, ", data.spec().ToString(),
        ": Parameters are those that MPC_CELL names; ops::Grad gives derivatives by inputs and other tensors"));
  }
}

const std::string& Parameter::name() const { return data_->entry->name(); }
const Shape& Parameter::shape() const { return data_->entry->spec().shape; }
DType Parameter::dtype() const { return data_->entry->spec().dtype; }
bool Parameter::requires_grad() const { return data_->requires_grad; }
bool Parameter::made_trainable() const { return data_->made_trainable; }
void Parameter::set_requires_grad(bool requires_grad) {
  data_->requires_grad = requires_grad;
  data_->made_trainable |= requires_grad;
  internal::StructureChanged();
}
const Initializer& Parameter::initializer() const { return data_->initializer; }
const std::shared_ptr<runtime::StateEntry>& Parameter::entry() const { return data_->entry; }
void Parameter::set_name(const std::string& name) { data_->entry->set_name(name); }
const Parameter& Parameter::owner() const { return data_->owner; }
void Parameter::set_owner(const Parameter& owner) { data_->owner = owner; }
std::uint64_t Parameter::seed() const { return data_->seed; }
std::int64_t Parameter::stream() const { return data_->stream; }
bool Parameter::is_drawn() const { return data_->is_drawn; }
const absl::Status& Parameter::initial_error() const { return data_->initial_error; }

TensorSpec Parameter::traced_spec() const { return {data_->traced_dtype, shape()}; }

std::optional<DType> Parameter::low_storage() const {
  return dtype() == data_->traced_dtype ? std::nullopt : std::optional(dtype());
}

absl::Status Parameter::StoreLow(DType low) {
  if (dtype() != DType::kF32 || !IsLowPrecision(low)) {
    return absl::FailedPreconditionError(absl::StrCat("parameter '", name(), "' is stored in ",
                                                      std::string(DTypeName(dtype())), ", it cannot be stored in ",
                                                      std::string(DTypeName(low)), " instead"));
  }
  auto entry = std::make_shared<runtime::StateEntry>(name(), data_->entry->role(), TensorSpec{low, shape()});
  if (data_->entry->initialised()) {
    if (absl::Status status = data_->entry->FetchToHost(); !status.ok()) return status;
    if (absl::Status status = WriteRounded(*entry, data_->entry->data()); !status.ok()) return status;
  }
  data_->entry = std::move(entry);
  internal::StructureChanged();
  return absl::OkStatus();
}

absl::StatusOr<Tensor> Parameter::Value() const {
  if (!defined()) return absl::FailedPreconditionError("an undefined Parameter has no value");
  if (absl::Status status = InitialiseParameters({*this}); !status.ok()) return status;
  if (absl::Status status = data_->entry->FetchToHost(); !status.ok()) return status;
  const TensorSpec& spec = data_->entry->spec();
  return Tensor::FromBytes(spec, data_->entry->data(), spec.bytes());
}

absl::Status Parameter::SetData(const Tensor& data) {
  if (!defined()) return absl::FailedPreconditionError("an undefined Parameter cannot be set");
  if (!data.concrete()) return absl::InvalidArgumentError("a Parameter is set from a concrete tensor");
  if (!data.status().ok()) return data.status();
  if (low_storage().has_value() && data.spec() == traced_spec())
    return WriteRounded(*data_->entry, data.bytes().data());
  if (data.spec() != data_->entry->spec()) {
    return absl::InvalidArgumentError(absl::StrCat("parameter '", name(), "' is ", data_->entry->spec().ToString(),
                                                   ", got ", data.spec().ToString()));
  }
  return data_->entry->Write(data.bytes());
}

Tensor Parameter::Read() const {
  if (internal::Trace* trace = internal::Trace::Current()) return trace->state().Read(*this);
  absl::StatusOr<Tensor> value = Value();
  return value.ok() ? *value : Tensor();
}

void Parameter::Assign(const Tensor& value) {
  if (internal::Trace* trace = internal::Trace::Current()) {
    trace->state().AssignShared(*this, value);
  } else {
    SetData(value).IgnoreError();
  }
}

absl::StatusOr<runtime::Program> internal::CompileInitState(absl::Span<const Parameter> parameters) {
  internal::Trace trace{internal::TraceOptions()};
  trace.AddInitState(parameters);
  absl::StatusOr<compiler::Module> module = trace.Finish();
  if (!module.ok()) return module.status();
  compiler::CompileOptions options;
  options.function = "init_state";
  absl::StatusOr<compiler::CompileResult> compiled = compiler::Compile(*module, options);
  if (!compiled.ok()) return compiled.status();
  return std::move(compiled->program);
}

namespace {

// One seed's parameters through `@init_state`, on the CPU: equal values wherever the steps run.
absl::Status DrawInitialValues(std::uint64_t seed, const std::vector<Parameter>& parameters) {
  absl::StatusOr<runtime::Program> program = internal::CompileInitState(parameters);
  if (!program.ok()) return program.status();
  absl::StatusOr<const runtime::Device*> device = runtime::GetDevice(program->device);
  if (!device.ok()) return device.status();
  absl::StatusOr<std::unique_ptr<runtime::Executable>> executable =
      (*device)->Load(std::make_shared<const runtime::Program>(*std::move(program)), runtime::StateStore());
  if (!executable.ok()) return executable.status();
  std::vector<absl::Span<const std::uint8_t>> inputs;
  // The seed is the only input, and absent where every value is a constant.
  if (!(*executable)->program().inputs.empty()) {
    inputs.emplace_back(reinterpret_cast<const std::uint8_t*>(&seed), sizeof(seed));
  }
  if (absl::Status status = (*executable)->Run(inputs); !status.ok()) return status;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const absl::Span<const std::uint8_t> drawn = (*executable)->output(i);
    runtime::StateEntry& entry = *parameters[i].entry();
    const absl::Status status =
        parameters[i].low_storage().has_value() ? WriteRounded(entry, drawn.data()) : entry.Write(drawn);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status InitialiseParameters(absl::Span<const Parameter> parameters) {
  std::map<std::uint64_t, std::vector<Parameter>> by_seed;
  for (const Parameter& parameter : parameters) {
    if (parameter.entry()->initialised()) continue;
    if (const absl::Status& error = parameter.initial_error(); !error.ok()) {
      return absl::Status(error.code(), absl::StrCat("parameter '", parameter.name(),
                                                     "' was made from a tensor that has an error: ", error.message()));
    }
    by_seed[parameter.seed()].push_back(parameter);
  }
  for (const auto& [seed, group] : by_seed) {
    if (absl::Status status = DrawInitialValues(seed, group); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace mpc

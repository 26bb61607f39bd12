#include "frontend/graph/context_fields.h"

#include <concepts>
#include <optional>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "compiler/driver/compiler.h"

namespace mpc {
namespace {

std::string TextOf(const ContextField&, const std::string& value) { return value; }

std::string TextOf(const ContextField& field, const std::optional<bool>& value) {
  if (!value.has_value()) return "";
  if (std::string_view(field.placeholder) == "on|off") return *value ? "on" : "off";
  return *value ? "true" : "false";
}

template <typename Number>
requires std::integral<Number> std::string TextOf(const ContextField& field, Number value) {
  if constexpr (std::same_as<Number, bool>) return TextOf(field, std::optional<bool>(value));
  return absl::StrCat(value);
}

absl::Status CheckRanges(const ContextOptions& options, ContextNamer call) {
  absl::Status status;
  VisitContext(options, [&](const ContextField& field, const auto& value) {
    if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(value)>>) {
      const auto& [least, most, least_means] = field.range;
      if (!status.ok() || (value >= least && value <= most)) return;
      const std::string from = *least_means == '\0' ? absl::StrCat(least) : absl::StrCat(least, " (", least_means, ")");
      const bool is_bytes = std::string_view(field.placeholder) == "BYTES";
      status = absl::InvalidArgumentError(
          absl::StrCat(call(field, ""), " must be ",
                       most < ContextRange().most ? absl::StrCat("from ", from, " to ", most)
                                                  : absl::StrCat(from, is_bytes ? " or a number of bytes" : " or more"),
                       ", got ", value));
    }
  });
  return status;
}

/// Sets the option called `name`, where there is one, which has the type of `value`.
template <typename Value>
void SetOption(std::string_view name, const Value& value, compiler::CompileOptions& options) {
  compiler::visitOptions(options, [&](const compiler::OptionInfo& info, auto& option) {
    if constexpr (std::is_same_v<decltype(option), Value&>) {
      if (name == info.name) option = value;
    }
  });
}

}  // namespace

std::vector<ContextValue> ContextValues(const ContextOptions& options) {
  std::vector<ContextValue> values;
  const ContextOptions defaults;
  VisitContext(defaults, [&](const ContextField& field, const auto& value) {
    values.push_back({.field = field, .text = TextOf(field, value)});
  });
  auto next = values.begin();
  VisitContext(options, [&](const ContextField& field, const auto& value) {
    const std::string text = TextOf(field, value);
    next->is_given = text != next->text;
    next++->text = text;
  });
  return values;
}

std::string NameOfField(const ContextField& field, std::string_view text) {
  return text.empty() ? field.name : absl::StrCat(field.name, " = ", std::string(text));
}

absl::Status CheckContext(const ContextOptions& options, ContextNamer call) {
  if (options.mode != "graph") {
    return absl::InvalidArgumentError(absl::StrCat("unknown mode '", options.mode,
                                                   "'; \"graph\" is the only mode: precision, gradients and loss scale "
                                                   "are decided on whole steps"));
  }
  if (absl::Status status = CheckRanges(options, call); !status.ok()) return status;
  const std::vector<ContextValue> values = ContextValues(options);
  const auto called = [&](std::string_view name) {
    for (const ContextValue& value : values) {
      if (name == value.field.name) return call(value.field, value.text);
    }
    return std::string(name);
  };
  const bool is_known = options.device == "cpu" || options.device == "cuda";
  for (const auto& [field, text, is_given] : values) {
    // A switch that is off asks nothing of a device. One that there is not is an error of its own.
    const bool asks = is_given && text != "false" && *field.only_on != '\0';
    if (!asks || !is_known || options.device == field.only_on) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(call(field, text), " and ", called("device"), " contradict each other: only device \"",
                     field.only_on, "\" has this option; leave it out, or use device \"", field.only_on, "\""));
  }
  if (options.steps_per_launch > 1 && !options.graph.value_or(true)) {
    return absl::InvalidArgumentError(absl::StrCat(called("steps_per_launch"), " and ", called("graph"),
                                                   " contradict each other: several steps are one launch only as a ",
                                                   "graph"));
  }
  return absl::OkStatus();
}

void CopyOptions(const ContextOptions& context, bool of_device, compiler::CompileOptions& options) {
  VisitContext(context, [&](const ContextField& field, const auto& value) {
    if (of_device || field.reach == ContextReach::kEveryModel) SetOption(field.option, value, options);
  });
}

}  // namespace mpc

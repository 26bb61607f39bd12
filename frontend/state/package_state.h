// The state of a package's Programs: how it begins, from files and back. Needs no compiler.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/program_file.h"
#include "runtime/state_store.h"

namespace mpc {

/// Makes every entry that a Program of `package` binds, with its initial value. Derived entries have no value; the
/// first step rebuilds them. Random values are drawn on the CPU. A `seed` takes the place of the package's: for initial
/// values and in the generator's state (role "rng"). Equal seeds give the bits that training begins with where the
/// package was made. Errors: those of drawing; RESOURCE_EXHAUSTED where the machine has less memory than the state
/// needs.
absl::StatusOr<runtime::StateStore> MakeInitialState(const runtime::Package& package,
                                                     std::optional<std::uint64_t> seed = std::nullopt);

/// Makes `seed` that of the generator's state, whatever was loaded. How many steps it has made stays.
absl::Status SetSeedOfState(std::uint64_t seed, runtime::StateStore& state);

/// What the labels stand for that the package's Programs were trained with: Dataset::class_names. Empty where the data
/// set did not say. Errors (INVALID_ARGUMENT): the entry of the metadata is no list of texts.
absl::StatusOr<std::vector<std::string>> ClassNames(const runtime::Package& package);

/// Writes every entry that is not derived as safetensors, under its name. Errors: the path and the reason.
absl::Status SaveState(const std::string& path, const runtime::StateStore& state);

/// Reads entries from safetensors that SaveState, a checkpoint or another program wrote; floating types are converted.
/// Returns the names in the file that `state` does not have. Everything is checked first: on an error, which lists
/// every problem, nothing has changed. Errors: those of LoadSafetensors; a parameter that the file does not have; an
/// entry of another shape or kind of type.
absl::StatusOr<std::vector<std::string>> LoadState(const std::string& path, runtime::StateStore& state);

}  // namespace mpc

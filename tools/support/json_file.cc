#include "tools/support/json_file.h"

namespace mpc::tools {

absl::Status WriteJsonFile(const std::string& path, const Json& value) {
  return runtime::WriteTextFile(path,
                                value.dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n");
}

}  // namespace mpc::tools

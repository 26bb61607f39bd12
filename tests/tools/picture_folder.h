// Folders of a few pictures, as --data=pictures reads them.
#pragma once

#include <filesystem>
#include <string>

namespace mpc::tools {

/// Writes three pictures of each of the classes "ant" and "bee" to `folder`/train, and one of each to `folder`/test.
inline void WritePictures(const std::string& folder) {
  const std::filesystem::path from(MPC_PICTURES), to(folder);
  const auto write = [&](const char* picture, const char* name) {
    std::filesystem::create_directories((to / name).parent_path());
    std::filesystem::copy_file(from / picture, to / name);
  };
  write("jpeg_420.jpg", "train/ant/1.jpg");
  write("jpeg_444.jpg", "train/ant/2.jpg");
  write("jpeg_progressive.jpg", "train/ant/3.jpg");
  write("png_rgb.png", "train/bee/1.png");
  write("png_palette.png", "train/bee/2.png");
  write("png_grey.png", "train/bee/3.png");
  write("jpeg_420.jpg", "test/ant/1.jpg");
  write("png_rgb.png", "test/bee/1.png");
}

/// Cuts a picture of them short.
inline void Damage(const std::string& picture) {
  std::filesystem::resize_file(picture, std::filesystem::file_size(picture) / 2);
}

}  // namespace mpc::tools

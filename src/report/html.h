#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "report/document.h"

namespace halfwatt {

/// `document` as one HTML page that loads nothing: style, charts and Chart.js are inside. It
/// follows the reader's light or dark scheme, fits a phone, and prints; each chart comes with
/// its figures as a table, so that it can be read without eyes and without JavaScript.
std::string render_html(const Document& document);

/// Writes the page of `document` to `path`, whole or not at all; see write_whole_file for the
/// errors.
Result<void> write_html(const Document& document, const std::filesystem::path& path);

}  // namespace halfwatt

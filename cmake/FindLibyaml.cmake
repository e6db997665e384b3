# Libyaml::yaml, from pkg-config.
find_package(PkgConfig REQUIRED)
pkg_check_modules(Libyaml REQUIRED IMPORTED_TARGET yaml-0.1)
if(TANDEM_STATIC)
  tandem_static(Libyaml::yaml yaml)
elseif(NOT TARGET Libyaml::yaml)
  add_library(Libyaml::yaml ALIAS PkgConfig::Libyaml)
endif()
set(Libyaml_FOUND TRUE)

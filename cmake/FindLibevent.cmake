# Libevent::event, from pkg-config: the core loop, buffered sockets, and those over OpenSSL.
find_package(PkgConfig REQUIRED)
pkg_check_modules(Libevent REQUIRED IMPORTED_TARGET libevent libevent_openssl)
if(TANDEM_STATIC)
  tandem_static(Libevent::event event_openssl event)
elseif(NOT TARGET Libevent::event)
  add_library(Libevent::event ALIAS PkgConfig::Libevent)
endif()
set(Libevent_FOUND TRUE)

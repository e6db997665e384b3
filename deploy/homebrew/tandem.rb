# Formula for Homebrew, which builds from source. `make release URL=...` fills in what stands between @: build/dist/tandem.rb.
class Tandem < Formula
  desc "Autoscaler of Kubernetes pods: requests, replicas or both"
  homepage "@URL@"
  url "@URL@/tandem-@VERSION@.tar.gz"
  sha256 "@SHA256@"
  license "Apache-2.0"

  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on "pkg-config" => :build
  depends_on "curl"
  depends_on "libevent"
  depends_on "libyaml"
  depends_on "openssl@3"

  def install
    system "cmake", "-S", ".", "-B", "build", "-G", "Ninja", "-DTANDEM_TESTS=OFF", *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/tandem --version")
  end
end
